"""`shop run`: opens the session, starts the queries, and watches them until somebody stops it."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from barnabas.spark import serve_metrics
from shop.project import Project, ProjectError
from shop.session import open_session
from shop.streams import NAMES, Streams
from shop.watch import Watcher, first_line

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
_ATTEMPTS = 5


def run(
    project: Project,
    servers: str,
    master: str | None,
    settings: Mapping[str, str],
    every_s: float,
    metrics_port: int | None,
) -> None:
    """Run the queries until SIGTERM or SIGINT; with `every_s` 0 until they have read what is there now.

    Args:
        metrics_port: where Prometheus reads the queries' metrics; 0 is a free port, None no metrics.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    with project.lock():
        spark = open_session(project.folder, master, settings)
        for number in (signal.SIGTERM, signal.SIGINT):  # only now: the session takes SIGINT for itself
            signal.signal(number, stop)
        if metrics_port is not None:
            _serve_metrics(spark, metrics_port)
        streams = Streams(spark, servers, project.folder, every_s, project.starting())
        if every_s:
            _watch(project, streams, stopped)
        else:
            _once(streams)
        spark.stop()


def _serve_metrics(spark: SparkSession, port: int) -> None:
    try:
        page = serve_metrics(spark, port)
    except RuntimeError as error:
        raise ProjectError(str(error)) from None
    logger.info("metrics for Prometheus: %s", page.url)


def _watch(project: Project, streams: Streams, stopped: threading.Event) -> None:
    watcher = Watcher(streams.start, NAMES)
    views_made = False
    while not stopped.is_set():
        watcher.step(time.monotonic())
        if not views_made and all(each.query is not None for each in watcher.watched.values()):
            streams.create_views()
            views_made = True
            logger.info("all queries run")
        project.write_status(watcher.status())
        stopped.wait(LOOK_EVERY_S)
    watcher.stop()
    project.write_status(watcher.status())


def _once(streams: Streams) -> None:
    """Read what is there now, each query when those before it are through."""
    for name in NAMES:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                streams.start(name).awaitTermination()
                break
            except StreamingQueryException as error:
                if attempt == _ATTEMPTS:
                    raise
                logger.warning("%s failed and starts again: %s", name, first_line(error))
    streams.create_views()
