"""The transactional ids of the Spark sink's tasks, and the sink's name in them.

    PREFIX/QUERY/WORKER/NUMBER     the first two are the sink's name

A worker is twelve hexadecimal digits. Neither prefix nor query has a slash.
"""

from __future__ import annotations

import re

SEPARATOR = "/"
_TASK_ID = re.compile(r"(?P<name>[^/]+/[^/]+)/[0-9a-f]{12}/\d+")


def sink_of(transactional_id: str) -> str | None:
    """Return the name of the sink whose task has a transactional id; None if it is no sink's."""
    found = _TASK_ID.fullmatch(transactional_id)
    return found["name"] if found else None
