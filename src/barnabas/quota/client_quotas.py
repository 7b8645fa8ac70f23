"""Client quotas: the limit of a client, its usage, and how long to throttle it.

    ClientQuotaRecord ──► limits by entity ──► QuotaSensor for each group that shares a limit ──► milliseconds

The most specific entity with a limit decides, in this order:

    user and client-id · user and default client-id · user · default user and client-id · default user and default
    client-id · default user · client-id · default client-id

- A default limit applies to each client, not to all together: two clients under the default client-id have a sensor each. The entity
  of a limit decides which clients share a sensor: those of one (user, client-id) if it names both kinds, else those of one user or
  of one client-id.
- A request without a client id has no limit by client-id, nor by user and client-id.
- A changed limit keeps the measurements. A sensor that was silent for an hour is dropped.
- Without any limit nothing is measured: a request only reads `is_enabled`.

Four quotas: bytes produced and bytes fetched per second, percent of a thread's time, partitions created or deleted per second. The
last is a token bucket (KIP-599). A strict bucket rejects requests with THROTTLING_QUOTA_EXCEEDED once it is below zero; a permissive
one admits all requests and only returns a throttle time.

Sources: Kafka's `ClientQuotaManager`, `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`,
`ClientQuotaMetadataManager`; KIP-13, KIP-55, KIP-124, KIP-219, KIP-546, KIP-599.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.metadata.client_quotas_image import QuotaEntity
from barnabas.quota.quota_manager import MutationQuotaManager, QuotaManager

__all__ = ["ClientQuotas", "QuotaWindows"]

logger = logging.getLogger(__name__)

_KINDS = ("user", "client-id")


class QuotaWindows(NamedTuple):
    """The windows over which quotas measure: quota.window.* and controller.quota.window.*."""

    samples: int = 11
    window_seconds: int = 1
    controller_samples: int = 11
    controller_window_seconds: int = 1


class ClientQuotas:
    """The four quotas of a broker.

    Args:
        now_ms: a clock; only differences count.

    Attributes:
        is_enabled: whether any client has any limit; nothing is measured otherwise.
        produce: bytes of Produce requests a second.
        fetch: bytes of Fetch responses a second.
        request: percent of a thread's time.
        controller_mutation: partitions created or deleted a second.
    """

    def __init__(self, windows: QuotaWindows, now_ms: Callable[[], int]) -> None:
        self.is_enabled = False
        samples, seconds = windows.samples, windows.window_seconds
        self.produce = QuotaManager(samples, seconds)
        self.fetch = QuotaManager(samples, seconds)
        # A longer rest than a window would be measured wrongly: the thread's time is recorded when a request ends.
        self.request = QuotaManager(samples, seconds, max_throttle_ms=seconds * 1000)
        self.controller_mutation = MutationQuotaManager(
            windows.controller_samples, windows.controller_window_seconds, now_ms
        )
        self._by_key: Mapping[str, QuotaManager | MutationQuotaManager] = {
            "producer_byte_rate": self.produce,
            "consumer_byte_rate": self.fetch,
            "request_percentage": self.request,
            "controller_mutation_rate": self.controller_mutation,
        }

    def __repr__(self) -> str:
        return f"<ClientQuotas {'enabled' if self.is_enabled else 'none'}>"

    def apply(self, changed: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
        """Apply committed changes; None removes a limit."""
        for entity, limits in changed.items():
            if not all(kind in _KINDS for kind, _ in entity):
                continue
            for key, limit in limits.items():
                manager = self._by_key.get(key)
                if manager is None:
                    logger.warning("Ignoring unexpected quota key %s for entity %s", key, entity)
                else:
                    manager.update(entity, limit)
        self.is_enabled = any(manager.is_enabled for manager in self._by_key.values())

    def expire(self, now_ms: int) -> None:
        """Drop sensors that were silent for an hour; the server calls this on a timer."""
        if self.is_enabled:
            for manager in self._by_key.values():
                manager.expire(now_ms)
