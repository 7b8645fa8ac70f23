"""The logs of the replicas of partitions without a leader, as their brokers describe them in heartbeats.

- A broker says it in each heartbeat, for as long as a partition of its own has no leader (`replication.leaderless_replicas`). So the
  controller need not ask, and a new controller knows it after one interval of heartbeats.
- A statement holds for one broker epoch, because a broker that restarts may have lost records, and for one leader epoch, because a
  leader in between may have cut the log. Every other statement counts as none.
- A broker that says nothing at all in its heartbeats is an Apache Kafka broker, or an older barnabas.

This is soft state of the active controller, as `broker_sessions` is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.protocol import messages

Key = tuple[bytes, int]
"""Topic id and partition index."""


class ReplicaLog(NamedTuple):
    """The end of one replica's log.

    Attributes:
        broker_epoch: of the broker that says it.
        leader_epoch: of the partition without a leader, as that broker knows it.
        last_epoch: the leader epoch of the last record, -1 in an empty log.
        end_offset: the offset after the last record.
    """

    broker_epoch: int
    leader_epoch: int
    last_epoch: int
    end_offset: int

    @property
    def rank(self) -> tuple[int, int]:
        """The greater of two ranks is the longer log: every record below its end was written after, or is the same."""
        return self.last_epoch, self.end_offset


class ReplicaLogs:
    """The statements of all brokers.

    Attributes:
        mute: the brokers whose last heartbeat said nothing of logs, not even that there is no such partition.
    """

    def __init__(self) -> None:
        self.mute: set[int] = set()
        self._logs: dict[int, dict[Key, ReplicaLog]] = {}
        # Since when a partition waits for the logs of its replicas: leader epoch, and milliseconds of the monotonic clock.
        self._waiting: dict[Key, tuple[int, int]] = {}

    def __repr__(self) -> str:
        return f"<ReplicaLogs of={sorted(self._logs)} mute={sorted(self.mute)} waiting={len(self._waiting)}>"

    def note(
        self, broker_id: int, broker_epoch: int, said: Iterable[messages.BrokerHeartbeatRequest.ReplicaLog] | None
    ) -> set[Key]:
        """Note what a heartbeat says; return the partitions of which it says something new.

        Args:
            said: None if the broker does not say such things.
        """
        if said is None:
            self.mute.add(broker_id)
            self._logs.pop(broker_id, None)
            return set()
        self.mute.discard(broker_id)
        before = self._logs.setdefault(broker_id, {})
        now = {
            (each.topic_id, each.partition): ReplicaLog(
                broker_epoch, each.current_leader_epoch, each.last_written_leader_epoch, each.log_end_offset
            )
            for each in said
        }
        new = {key for key, log in now.items() if before.get(key) != log}
        if not now:
            before.clear()
        # A heartbeat has only some of very many partitions; those that are over have another leader epoch.
        before.update(now)
        return new

    def forget(self, broker_id: int) -> None:
        self.mute.discard(broker_id)
        self._logs.pop(broker_id, None)

    def known(self, key: Key, leader_epoch: int, broker_epochs: dict[int, int]) -> dict[int, ReplicaLog]:
        """Return the logs of a partition's replicas that are known, by broker.

        Args:
            broker_epochs: of the brokers that are registered.
        """
        found = {}
        for broker_id, epoch in broker_epochs.items():
            log = self._logs.get(broker_id, {}).get(key)
            if log is not None and log.broker_epoch == epoch and log.leader_epoch == leader_epoch:
                found[broker_id] = log
        return found

    def waits_for_ms(self, key: Key, leader_epoch: int, now_ms: int) -> int:
        """Return for how long a partition has waited in this leader epoch; the wait begins now if it has not begun."""
        since = self._waiting.get(key)
        if since is None or since[0] != leader_epoch:
            since = self._waiting[key] = (leader_epoch, now_ms)
        return now_ms - since[1]

    def end_waits(self, but: Collection[Key]) -> None:
        """Forget the waits of all other partitions."""
        for key in [key for key in self._waiting if key not in but]:
            del self._waiting[key]

    @property
    def waiting(self) -> Collection[Key]:
        return self._waiting.keys()
