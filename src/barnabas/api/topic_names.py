"""Which names a topic may have, and which topics are the broker's own. Control plane, pure.

Source: Kafka's `Topic.validate` and `Topic.INTERNAL_TOPICS`.
"""

from __future__ import annotations

import re

__all__ = ["INTERNAL_TOPICS", "is_valid"]

INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))

_VALID = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_valid(name: str) -> bool:
    """Whether Kafka accepts this as a topic's name."""
    return name not in (".", "..") and _VALID.fullmatch(name) is not None
