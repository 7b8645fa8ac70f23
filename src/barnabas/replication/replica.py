"""One follower as its leader sees it: where the follower's log ends, and when it was last caught up.

The follower's Fetch says both. A Fetch from offset n says that the follower has all records below n.

    leader's end    10           14            14
    fetch from          10            12             14
    caught up           at this      at the         at this
                        fetch        fetch before   fetch

A follower is caught up at the time t if it has fetched all that the leader had at t. The second fetch above shows this for the time of
the first fetch, when the leader's log ended at 10. So a follower that never reaches the end of a busy log is in sync all the same, if it
is never behind for long.

- A new epoch makes new objects: what a follower had before it proves nothing. Kafka keeps the log end if the same broker leads again.
- A follower's requests do not name the partitions of its fetch session without changes. The next append to such a partition proves that
  the follower was caught up until then. Kafka counts each request for all partitions of its session.
- Times are monotonic milliseconds.

Source: Kafka's `Replica`, `ReplicaState`; KIP-16, KIP-903.
"""

from __future__ import annotations

__all__ = ["NEVER_MS", "Replica"]

NEVER_MS = -(1 << 62)
UNKNOWN_OFFSET = -1


class Replica:
    """One follower, in one leader epoch.

    Args:
        caught_up_ms: the time when the epoch began for a follower in the ISR, so that it has time to fetch; else NEVER_MS.

    Attributes:
        log_start_offset, log_end_offset: of the follower's log; -1 before its first fetch.
        broker_epoch: from the last fetch, -1 if that had none; None before the first.
        caught_up_ms: when the follower was last known to be caught up.
    """

    __slots__ = (
        "_last_fetch_leader_end",
        "_last_fetch_ms",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int = NEVER_MS) -> None:
        self.broker_id = broker_id
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.broker_epoch: int | None = None
        self.caught_up_ms = caught_up_ms
        self._last_fetch_ms = NEVER_MS
        self._last_fetch_leader_end = UNKNOWN_OFFSET

    def __repr__(self) -> str:
        return f"<Replica broker={self.broker_id} log_end_offset={self.log_end_offset}>"

    def fetched(
        self, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int, now_ms: int
    ) -> None:
        """Record a fetch.

        Args:
            leader_end_offset: of the leader's log, when the fetch arrived.
        """
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif fetch_offset >= self._last_fetch_leader_end:
            self.caught_up_ms = max(self.caught_up_ms, self._last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.broker_epoch = broker_epoch
        self._last_fetch_ms = now_ms
        self._last_fetch_leader_end = max(self._last_fetch_leader_end, leader_end_offset)

    def leader_appended(self, before: int, now_ms: int) -> None:
        """Note that the leader's log ended at `before` until now."""
        if self.log_end_offset == before:
            self.caught_up_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return whether the follower has the leader's whole log, or had it less than `lag_time_max_ms` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_time_max_ms
