"""The error code of a transaction's request for the client's version.

PRODUCER_FENCED came with a later version of each request; clients of an older version know INVALID_PRODUCER_EPOCH instead.

Source: KIP-588; Kafka's `KafkaApis.handleEndTxnRequest` and its siblings.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, KafkaError


def producer_error(error: KafkaError, version: int, *, fenced_since: int) -> ErrorCode:
    """Return the code to send; `fenced_since` is the first version of the request that knows PRODUCER_FENCED."""
    if error.code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
