"""The valid names of topics, and the names of internal ones.

Metrics replace dots by underscores, so `a.b` and `a_b` collide: a cluster has one of them at most.

Source: Kafka's `org.apache.kafka.common.internals.Topic`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator

MAX_LENGTH = 249
# A name with at most this many dots and underscores is tried in all of its 2 ** FEW_MARKS spellings.
FEW_MARKS = 6
CLUSTER_METADATA = "__cluster_metadata"
GROUP_METADATA = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def fault(name: str) -> str | None:
    """Return Kafka's message for an invalid topic name; None if the name is valid."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    elif not _LEGAL.match(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None if reason is None else f"Topic name is invalid: {reason}"


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def unified(name: str) -> str:
    """Return the name that metrics use; topics with equal unified names collide."""
    return name.replace(".", "_")


def collision(name: str, existing: Collection[str]) -> str | None:
    """Return the existing topic whose name collides with this one, the first in name order."""
    parts = re.split("[._]", name)
    marks = len(parts) - 1
    if not marks:
        return None
    if marks <= FEW_MARKS:
        # Trying each way to write the name does not depend on how many topics there are.
        found = [variant for variant in _variants(parts) if variant in existing]
    else:
        wanted = unified(name)
        found = [other for other in existing if unified(other) == wanted]
    return min(found, default=None)


def _variants(parts: list[str]) -> Iterator[str]:
    for marks in itertools.product("._", repeat=len(parts) - 1):
        yield parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))
