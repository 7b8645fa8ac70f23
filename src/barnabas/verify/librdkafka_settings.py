"""librdkafka's settings for clients that see their only broker die every few seconds."""

from __future__ import annotations

import logging
from typing import Any

from confluent_kafka import libversion

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.security.client_security import ClientSecurity

_SILENT = logging.getLogger("barnabas.verify.librdkafka")
"""Clients are often fenced or disconnected here; the history has the consequences."""
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_HAS_RECOVERY_STRATEGY = 0x020A0000
"""librdkafka 2.10 bootstraps again if no broker answers (KIP-899)."""


def steady(bootstrap: str, security: ClientSecurity | None = None) -> dict[str, Any]:
    """Return settings of producers and consumers: reconnect quickly, log nothing.

    Bootstrapping again is off: with a single broker it discards the handle that pending calls wait for, and sometimes a transactional
    call (seen with 2.16) never returns.
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap, "log_level": 0, "logger": _SILENT, "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200, "topic.metadata.refresh.interval.ms": 5_000,
    }  # fmt: skip
    settings |= librdkafka_security(security)
    if libversion()[1] >= _HAS_RECOVERY_STRATEGY:
        settings["metadata.recovery.strategy"] = "none"
    return settings
