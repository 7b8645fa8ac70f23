"""Refuses requests whose arrays are far longer than any group's or quorum's, because they are handled in one operation.

A member's heartbeat changes its group as a whole, and a request of the quorum its leader or a voter: they cannot be handled in slices.
Apache Kafka has no such limits; its coordinators and its quorum have threads of their own. `docs/limits.md` names them.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext, RequestContext
from barnabas.group.parts import parts_of
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Struct

__all__ = ["check_elements", "check_subscription"]

ELEMENTS_MAX = 5_000
MISSING_TOPICS_MAX = 1_000


async def check_subscription(context: RequestContext, names: list[str] | None) -> None:
    """Reject a subscription to many topics that do not exist.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if not context.is_long or not names:
        return
    by_name = context.services.image().topics.by_name
    missing = 0
    # A set of all of them would be made, and freed, in one turn.
    async for part in parts_of(names):
        missing += len(set(part) - by_name.keys())
    if missing > MISSING_TOPICS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The subscription names {missing} topics that do not exist; {MISSING_TOPICS_MAX} are allowed.",
        )


def check_elements(context: AnyContext, request: Struct) -> None:
    """Reject a request with more than `ELEMENTS_MAX` elements in its arrays, nested ones too.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if not context.is_long:
        return
    if _without_elements(ELEMENTS_MAX, request) < 0:
        message = f"The request's arrays have more than {ELEMENTS_MAX} elements."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _without_elements(allowed: int, message: Struct) -> int:
    """Return how many elements are still allowed after those of a message; any negative number if it has too many."""
    for name in message.NESTED:
        value = getattr(message, name)
        if type(value) is list:
            allowed -= len(value)
            if allowed < 0:
                return allowed
            for each in value:
                if isinstance(each, Struct):
                    allowed = _without_elements(allowed, each)
        elif isinstance(value, Struct):
            allowed = _without_elements(allowed, value)
    return allowed
