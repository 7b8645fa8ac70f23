"""The pipeline of `pipelines/shop`, as a process of its own: `python -m shop run` in a copy of the project.

The demo starts it, kills it once and starts it again. What it needs to continue is in the folder, nothing in a process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.demo.child_process import ChildProcess
from barnabas.demo.shop_broker import ShopBroker

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


class ShopProcess(ChildProcess):
    """`python -m shop run` in a folder; its output is in `spark.log` there.

    Args:
        folder: a copy of the project.
        master: where Spark runs.
        settings: more settings of Spark, as `NAME=VALUE`.
    """

    def __init__(
        self, folder: Path, broker: ShopBroker, master: str = "local[2]", settings: Sequence[str] = ()
    ) -> None:
        login = [f"spark.shop.command.config={broker.config}"] if broker.config else []
        conf = [word for each in (*_SHORT_RUN, _DRIVER_MEMORY, *login, *settings) for word in ("--conf", each)]
        command = [sys.executable, "-m", "shop", "run", "--master", master, "-b", broker.servers, *conf]
        address = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
        environment = {"PYTHONPATH": str(folder), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": address}
        super().__init__(command, folder, folder / "spark.log", environment)

    def start(self) -> None:
        """Start the pipeline; it continues where the folder's checkpoints say."""
        (self._folder / "status.json").unlink(missing_ok=True)
        super().start()

    def check(self) -> None:
        """Raise ShopStopped if the pipeline ended by itself, or if one of its queries fails again and again."""
        if (said := self.last_words()) is not None:
            raise ShopStopped(f"the pipeline ended: {said}")
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
