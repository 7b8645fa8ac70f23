"""Fails the query, or logs a warning, when records that the query should read are gone.

`failOnDataLoss` decides, as in Spark's own Kafka source. The warning is in the log of the process that noticed: the
driver's log when a query is planned, an executor's log when a task reads.
"""

from __future__ import annotations

import logging

from barnabas.spark.plain_errors import SourceError

logger = logging.getLogger("barnabas.spark")

_ADVICE = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    'streaming query to fail on such cases, set the source option "failOnDataLoss" to "false".'
)


class DataLoss(SourceError):
    """Records that the query should read are no longer there."""


def report_data_loss(what: str, *, fail: bool) -> None:
    """Report records that are gone.

    Args:
        what: which records, in a sentence without a full stop.
        fail: the value of `failOnDataLoss`.

    Raises:
        DataLoss: if `fail` is true. Otherwise a warning is logged, and the caller continues without the records.
    """
    if fail:
        raise DataLoss(f"{what}. {_ADVICE}")
    logger.warning("%s; continuing without them, because failOnDataLoss is false", what)
