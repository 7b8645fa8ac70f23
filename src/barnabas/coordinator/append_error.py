"""The error code that a coordinator's client gets when the log refuses a record.

Clients of coordinators do not know the log's errors, so the coordinator returns its own. COORDINATOR_NOT_AVAILABLE: the partition does
not exist, is slow or has too few replicas. NOT_COORDINATOR: the broker has lost the leadership, or its disk fails.

Source: Kafka classes `CoordinatorOperationExceptionHelper` and `ApiError`.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, KafkaError


def append_error(error: KafkaError) -> ErrorCode:
    """Return the error code for the client; errors that are not the log's stay as they are."""
    code = error.code
    if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
        return ErrorCode.NOT_COORDINATOR
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code


def append_message(error: KafkaError) -> str | None:
    """Return the sentence that goes with `append_error`, None if it adds nothing to the code."""
    is_own = append_error(error) is error.code and error.message != error.code.default_message
    return error.message if is_own else None
