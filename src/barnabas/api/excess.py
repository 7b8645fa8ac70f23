"""Refuses requests whose arrays are far longer than any group's, because the coordinator must handle them in one operation.

A member's heartbeat changes its group as a whole, so it cannot be handled in slices. Apache Kafka has no such limits; its coordinator
has a thread of its own. `docs/limits.md` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Struct
from barnabas.steps import in_pieces

__all__ = ["check_elements", "check_subscription"]

ELEMENTS_MAX = 5_000
MISSING_TOPICS_MAX = 1_000


async def check_subscription(context: RequestContext, names: Sequence[str] | None) -> None:
    """Reject a subscription to many topics that do not exist.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if not context.is_long or not names:
        return
    by_name = context.services.image().topics.by_name
    missing = 0
    async for piece in in_pieces(names):
        missing += len(set(piece) - by_name.keys())
    if missing > MISSING_TOPICS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The subscription names {missing} topics that do not exist; {MISSING_TOPICS_MAX} are allowed.",
        )


def check_elements(context: RequestContext, request: Struct) -> None:
    """Reject a request with more than `ELEMENTS_MAX` elements in its arrays, nested ones too.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    if not context.is_long:
        return
    if next(islice(_elements(request), ELEMENTS_MAX, None), None) is not None:
        message = f"The request's arrays have more than {ELEMENTS_MAX} elements."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _elements(message: Any) -> Iterator[object]:
    for name in message.FIELDS:
        value = getattr(message, name)
        if isinstance(value, Struct):
            yield from _elements(value)
        elif isinstance(value, list):
            for each in value:
                yield each
                if isinstance(each, Struct):
                    yield from _elements(each)
