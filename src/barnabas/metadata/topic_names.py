"""Which names a topic may have.

Dots and underscores are both fine but not apart: metrics replace one by the other, so `a.b` and `a_b` would share theirs.

Source: Kafka's `org.apache.kafka.common.internals.Topic`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator

MAX_LENGTH = 249
# Up to so many dots and underscores the ways to write a name are counted out: 2 to the power of this.
FEW_MARKS = 6
CLUSTER_METADATA = "__cluster_metadata"
GROUP_METADATA = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE})

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def fault(name: str) -> str | None:
    """Why a topic cannot be called this, in Kafka's words; None when it can."""
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
    """The name that metrics would use; two topics whose unified names are equal collide."""
    return name.replace(".", "_")


def collision(name: str, existing: Collection[str]) -> str | None:
    """The existing topic whose name collides with this one, the first in name order."""
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
