"""Which epochs a node takes over from a peer.

An epoch never goes back and has 32 bits, so one that no election can follow would leave the quorum without a leader for ever. A node
believes a peer only so far:

- An epoch after which there is no other is never taken over.
- A request comes unasked. One that names an epoch far ahead is rejected: a node that really has missed so many elections learns the epoch
  from an answer, because without a leader it asks its peers itself.
- An answer comes from an address that this node knew, and may be much further ahead. There have never been so many elections.

A peer that means harm can still burn epochs, one step with each frame, as in Kafka: a listener of controllers is for trusted machines.
"""

from __future__ import annotations

__all__ = ["ANSWER_AHEAD_MAX", "LAST_EPOCH", "REQUEST_AHEAD_MAX", "is_credible"]

LAST_EPOCH = (1 << 31) - 2
"""The last epoch with a successor that fits 32 bits. A node in it stands for election no more."""

REQUEST_AHEAD_MAX = 1_000
ANSWER_AHEAD_MAX = 1 << 24


def is_credible(epoch: int, own: int, ahead_max: int) -> bool:
    """Return whether a node in epoch `own` may take over this one."""
    return epoch <= min(max(own, 0) + ahead_max, LAST_EPOCH)
