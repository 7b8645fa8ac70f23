"""The pipeline of `pipelines/shop`, as a process of its own: `python -m shop run` in a copy of the project.

The demo starts it, kills it once and starts it again. What it needs to continue is in the folder, nothing in a process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_STOPS_WITHIN_S = 60.0
_RESTARTS_MAX = 10
"""So often a query may fail: one whose Python process came up too late succeeds the next time, or the one after."""
# A demo is short: Java's second compiler and its parallel collector would take the cores from it and pay nothing back.
_SHORT_RUN = ("spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.ui.enabled=false")
_DRIVER_MEMORY = "spark.driver.memory=2g"


class ShopStopped(Exception):
    """The pipeline ended by itself; the message is for the user."""


class QueryProgress(NamedTuple):
    """The progress of one query, as the pipeline's watcher sees it."""

    name: str
    state: str
    batch: int
    rows: int
    last_batch_s: float
    behind: int
    dropped: int
    restarts: int
    idle: bool


class ShopProcess:
    """`python -m shop run` in a folder; its output is in `spark.log` there.

    Args:
        folder: a copy of the project.
        servers: the broker.
        master: where Spark runs.
        settings: more settings of Spark, as `NAME=VALUE`.
    """

    def __init__(self, folder: Path, servers: str, master: str = "local[2]", settings: Sequence[str] = ()) -> None:
        self._folder = folder
        conf = [word for each in (*_SHORT_RUN, _DRIVER_MEMORY, *settings) for word in ("--conf", each)]
        self._command = [sys.executable, "-m", "shop", "run", "--master", master, "-b", servers, *conf]
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<ShopProcess folder={self._folder} runs={self._process is not None}>"

    def start(self) -> None:
        """Start the pipeline; it continues where the folder's checkpoints say."""
        environment = os.environ | {"PYTHONPATH": str(self._folder), "PYSPARK_PYTHON": sys.executable}
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        (self._folder / "status.json").unlink(missing_ok=True)
        with open(self._folder / "spark.log", "ab") as log:
            # A session of its own: one signal reaches Java and all workers, and Ctrl-C reaches only the demo.
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Kill the pipeline with all its processes, without a word: as a machine that fails."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the pipeline after the batches that it is in."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def check(self) -> None:
        """Raise ShopStopped if the pipeline ended by itself, or if one of its queries fails again and again."""
        if self._process is not None and self._process.poll() is not None:
            lines = (self._folder / "spark.log").read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            said = re.sub(r"\s+", " ", lines[-1])
            raise ShopStopped(f"the pipeline ended: {said} ({self._folder / 'spark.log'} has the rest)")
        for query in self.status()["queries"]:
            if query["restarts"] > _RESTARTS_MAX:
                said = f"{query['name']} failed {query['restarts']} times: {query['error']}"
                raise ShopStopped(f"the pipeline cannot go on: {said} ({self._folder / 'spark.log'} has the rest)")

    def status(self) -> dict[str, Any]:
        """Return what the pipeline's watcher saw last; nothing before all of Spark is up."""
        try:
            found: dict[str, Any] = json.loads((self._folder / "status.json").read_text())
        except FileNotFoundError:
            return {"alarms": [], "queries": []}
        return found

    def progress(self) -> list[QueryProgress]:
        """Return the progress of each query."""
        return [
            QueryProgress(
                each["name"],
                each["state"],
                each["batch"],
                each["rows"],
                each["batch_s"],
                each["lag"],
                each["dropped"],
                each["restarts"],
                each["idle"],
            )
            for each in self.status()["queries"]
        ]
