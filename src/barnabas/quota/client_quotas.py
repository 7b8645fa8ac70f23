"""Client quotas: which limit a client has, how much of it is used, how long it must rest. Control plane, pure.

    ClientQuotaRecord ──► limits by entity ──► QuotaSensor by what the limit is shared among ──► milliseconds

The most specific entity that has a limit decides, in this order:

    user and client-id · user and default client-id · user · default user and client-id · default user and default
    client-id · default user · client-id · default client-id

- A default is a limit for each, not for all together: two clients under the default client-id have a sensor each. What a
  limit is shared among follows from its entity: (user, client-id) for entities that name both kinds, the user alone or the
  client-id alone otherwise.
- A request without a client id has no limit by client-id, and none by user and client-id.
- A changed limit keeps what was measured. A sensor that was silent for an hour is dropped.
- Without any limit nothing is measured: `is_enabled` is the one question that a request asks then. What measures
  (`quota_manager`) is not even loaded, so that a start does not pay for it.

Four quotas: bytes produced and bytes fetched per second, percent of a thread's time, partitions created or deleted per
second. The last is a token bucket (KIP-599), in two kinds: strict refuses with THROTTLING_QUOTA_EXCEEDED once the bucket is
below zero, permissive lets everything pass and only says how long to rest.

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
    """How long back quotas look: quota.window.* and controller.quota.window.*."""

    samples: int = 11
    window_seconds: int = 1
    controller_samples: int = 11
    controller_window_seconds: int = 1


class ClientQuotas:
    """The four quotas of a broker.

    Args:
        now_ms: wall clock; only differences count.

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
        """Take committed changes; None removes a limit."""
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
        """Drop what nobody has used for an hour; the server calls this on a timer."""
        if self.is_enabled:
            for manager in self._by_key.values():
                manager.expire(now_ms)
