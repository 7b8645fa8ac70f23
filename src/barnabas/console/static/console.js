// Local time beside UTC; what is unfolded stays so when its section is replaced. Without JavaScript the pages have UTC alone.
(function () {
  "use strict";
  function addLocalTimes(root) {
    root.querySelectorAll("time[datetime]:not([data-local])").forEach(function (time) {
      const moment = new Date(time.dateTime);
      if (isNaN(moment)) return;
      time.dataset.local = "1";
      const beside = document.createElement("span");
      beside.className = "local";
      const words = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
      beside.textContent = " (here " + words + ")";
      time.after(beside);
    });
  }
  const unfolded = new Set();
  // A click comes before the change, from a key too. The event after it, "toggle", also comes when htmx replaces a section.
  document.addEventListener("click", function (event) {
    const summary = event.target.closest("summary");
    const details = summary && summary.parentElement;
    if (details && details.id) unfolded[details.open ? "delete" : "add"](details.id);
  });
  function unfold() {
    unfolded.forEach(function (id) {
      const details = document.getElementById(id);
      if (details) details.open = true;
    });
  }
  addLocalTimes(document);
  document.addEventListener("htmx:afterSettle", function () { addLocalTimes(document); unfold(); });
})();
