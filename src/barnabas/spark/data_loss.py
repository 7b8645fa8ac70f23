"""What happens when records that a query should read are gone: the query fails, or goes on and says so.

Plane: control. `failOnDataLoss` decides, as in Spark's own Kafka source. A warning goes to the log of the process it
happened in: the driver's when a query is planned, an executor's when a task reads.
"""

from __future__ import annotations

import logging

_logger = logging.getLogger("barnabas.spark")

_ADVICE = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    'streaming query to fail on such cases, set the source option "failOnDataLoss" to "false".'
)


class DataLoss(Exception):
    """Records that the query should read are no longer there."""


def report_data_loss(what: str, *, fail: bool) -> None:
    """Tell of records that are gone.

    Args:
        what: which records, in a sentence without a full stop.
        fail: the value of `failOnDataLoss`.

    Raises:
        DataLoss: when `fail` is true; otherwise a warning is logged and the caller goes on without the records.
    """
    if fail:
        raise DataLoss(f"{what}. {_ADVICE}")
    _logger.warning("%s; going on without them, as failOnDataLoss is false", what)
