"""The removal of expired delegation tokens, at an interval (`delegation.token.expiry.check.interval.ms`).

An expired token cannot log in, even before it is removed. As in Kafka the first look is an interval after this node became the active
controller.

Source: Kafka's `DelegationTokenControlManager.sweepExpiredDelegationTokens`; KIP-900.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.metadata.batches import Batches, in_batches
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.metadata_version import DELEGATION_TOKENS_SINCE
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol.messages import RemoveDelegationTokenRecord

__all__ = ["TokenSweep"]


class TokenSweep:
    """Soft state of the active controller: when to look again, by its monotonic clock."""

    def __init__(self) -> None:
        self._next_ms: int | None = None

    def __repr__(self) -> str:
        return f"<TokenSweep next={self._next_ms}>"

    def due(self, view: ControllerView) -> Batches | None:
        """Return the removals that are due now, None if no look is due; call it often."""
        tokens = view.settings.tokens
        if tokens is None or (view.image.features.metadata_version or 0) < DELEGATION_TOKENS_SINCE:
            return None
        is_first = self._next_ms is None
        if self._next_ms is not None and view.now_ms < self._next_ms:
            return None
        self._next_ms = view.now_ms + tokens.expiry_check_interval_ms
        return None if is_first else in_batches(_removals(view))


def _removals(view: ControllerView) -> Iterator[MetadataRecord | None]:
    now_ms = view.clock.wall_ms()
    for token_id, token in view.image.delegation_tokens.tokens.items():
        yield RemoveDelegationTokenRecord(token_id=token_id) if token.is_expired(now_ms) else None
