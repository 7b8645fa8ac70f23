"""A batch that is written according to the log, compared with the batch that is here now.

Spark repeats a batch when it does not know that it was written, and then its rows are the same. A checkpoint that was
restored, or that lost its last files, repeats another batch under the same number: its rows would be dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decisions import Decision
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch, totals
from barnabas.words.printable import printable

logger = logging.getLogger("barnabas.spark")


def check_order(last: Decision, batch: SinkBatch) -> None:
    """Compare the number.

    Raises:
        QueryError: a later batch was written, and the log no longer tells whether the rows of this one are there.
    """
    if last.batch > batch.batch:
        raise QueryError(
            f"batch {batch.batch} of query {last.query} is older than batch {last.batch}, which the"
            " sink has written: the checkpoint was copied, or restored from a backup. To write its rows (again),"
            " choose another transactionalIdPrefix"
        )


def check_topic(last: Decision, topic: str | None) -> None:
    """Compare the option `topic`.

    Raises:
        QueryError: the batch was written into another topic.
    """
    if last.digest is not None and last.topic != topic:
        written, wanted = (
            "topics that the column topic named" if each is None else f"topic {printable(each)}"
            for each in (last.topic, topic)
        )
        raise QueryError(
            f"batch {last.batch} of query {last.query} was written before into {written}, and now it is to go"
            f" into {wanted}. Two writes need a queryId each; to move a stream, let it finish this batch with the"
            " old option topic"
        )


def check_rows(last: Decision, prepared: Iterable[Prepared], *, fail: bool) -> None:
    """Compare rows.

    Args:
        fail: False to log a difference only.

    Raises:
        QueryError: they differ.
    """
    rows, digest = totals(prepared)
    if last.digest is None or (last.rows, last.digest) == (rows, digest):
        return
    difference = (
        f"batch {last.batch} of query {last.query} was written before with {last.rows} rows (digest"
        f" {last.digest:016x}), and now it has {rows} rows (digest {digest:016x})"
    )
    if not fail:
        logger.warning("%s: these are dropped, because failOnDifferentBatch is false", difference)
        return
    raise QueryError(
        f"{difference}: it was planned again, after a checkpoint was restored or repaired, or its rows differ each"
        " time they are computed. Nothing of it was written now. Restore the newer checkpoint; or choose another"
        f" transactionalIdPrefix, which writes the whole batch and doubles the {last.rows} rows; or, for rows that"
        " differ each time, set failOnDifferentBatch=false, which drops these"
    )
