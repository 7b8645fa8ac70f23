"""librdkafka's settings for clients that see their only broker die every few seconds."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import libversion

_SILENT = logging.getLogger("barnabas.verify.librdkafka")
"""Being fenced or disconnected is everyday here; what it led to is in the history."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_HAS_RECOVERY_STRATEGY = 0x020A0000
"""librdkafka 2.10 begins anew from the bootstrap addresses when no broker answers (KIP-899)."""


def steady(bootstrap: str) -> dict[str, Any]:
    """Settings of producers and consumers: quick to come back, and quiet.

    Beginning anew from the bootstrap addresses is switched off: with a single broker it throws away the handle that calls under way
    wait for, and now and then a transactional call (seen with 2.16) never returns.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap, "log_level": 0, "logger": _SILENT, "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200, "topic.metadata.refresh.interval.ms": 5_000,
    }  # fmt: skip
    if libversion()[1] >= _HAS_RECOVERY_STRATEGY:
        settings["metadata.recovery.strategy"] = "none"
    return settings
