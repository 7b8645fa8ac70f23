// Local time beside UTC. Without JavaScript the pages have UTC alone.
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
  addLocalTimes(document);
  document.addEventListener("htmx:afterSettle", function () { addLocalTimes(document); });
})();
