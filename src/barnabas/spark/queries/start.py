"""Starts a streaming query, with patience for the Python processes of its sources.

Each Python source of a query is a process of its own, and Spark waits ten seconds for it ("failed to connect back").
Several queries that start together on a busy machine take longer. `start` returns when the sources of one query are
ready, so that the next query starts after them, and starts a query again whose source was late. The function of `foreachBatch`
is such a process too on a Spark Connect server, which then reports it before there is a query.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["PATIENCE_S", "start"]

PATIENCE_S = 300.0
_TOO_LATE = "connect back"
_POLL_S = 0.05
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 40.0


def start(
    writer: DataStreamWriter,
    patience_s: float = PATIENCE_S,
    *,
    table: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> StreamingQuery:
    """Start a query, and return it when its sources are ready.

    Args:
        writer: a complete `df.writeStream…`, before its `start`.
        patience_s: after this time, a query whose source was late is not started again.
        table: start the query with `toTable` of this name.

    Returns:
        The query. It runs, or has ended, or has failed: then `query.exception()` is the reason.
    """
    deadline_s = clock() + patience_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            query = writer.start() if table is None else writer.toTable(table)
        except Exception as error:  # Spark Connect's own kinds, which need packages that Spark itself does not
            if _TOO_LATE not in str(error) or clock() >= deadline_s:
                raise
        else:
            while query.isActive and query.status["message"].startswith("Initializing"):
                sleep(_POLL_S)
            late = query.exception()
            if late is None or _TOO_LATE not in str(late) or clock() >= deadline_s:
                return query
        # The late process is still starting, and earlier queries need less CPU later.
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
