"""What a client of a coordinator is told when the log refuses a record (control plane).

Clients of groups do not know the log's errors, so these become the coordinator's own: a partition that is gone, has too few replicas
or is slow means that the coordinator is not available now, a lost leadership or a broken disk that it is elsewhere.

Source: Kafka classes `CoordinatorOperationExceptionHelper` and `ApiError`.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, KafkaError


def append_error(error: KafkaError) -> ErrorCode:
    """The error code for the client; errors that are not the log's stay as they are."""
    code = error.code
    if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
        return ErrorCode.NOT_COORDINATOR
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code


def append_message(error: KafkaError) -> str | None:
    """The sentence that goes with `append_error`; None where it would say no more than the code does."""
    is_own = append_error(error) is error.code and error.message != error.code.default_message
    return error.message if is_own else None
