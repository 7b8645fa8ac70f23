"""When the active controller last heard from each broker, and how far the broker had read the metadata log then.

Times are of the monotonic clock: a wall clock that jumps would end all sessions together.
This is soft state: only the active controller keeps it, and a new controller gives each broker one full timeout first.

Source: Kafka's `BrokerHeartbeatManager`.
"""

from __future__ import annotations

from barnabas.metadata.cluster_image import ClusterImage
from barnabas.metadata.replica_logs import ReplicaLogs


class BrokerSessions:
    """The time of each broker's last contact; the session of a broker that is silent for `timeout_ms` has expired.

    Attributes:
        applied: the offset of the metadata log up to which each broker has read.
        settled: the unfenced brokers that have been considered as leader of every partition without one.
        disconnected: the brokers whose last heartbeat came over a connection that has ended.
        shut_down_offset: for a broker that shuts down, the offset up to which the others must read to know that it leads nothing.
        logs: what the brokers say of their replicas of partitions without a leader.
    """

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.last_contact_ms: dict[int, int] = {}
        self.applied: dict[int, int] = {}
        self.settled: set[int] = set()
        self.disconnected: set[int] = set()
        self.shut_down_offset: dict[int, int] = {}
        self.logs = ReplicaLogs()

    def touch(self, broker_id: int, now_ms: int, applied: int) -> None:
        self.last_contact_ms[broker_id] = now_ms
        self.applied[broker_id] = applied
        self.disconnected.discard(broker_id)

    def expire(self, broker_id: int, now_ms: int) -> None:
        """End a session before its time: the broker's process has ended."""
        self.last_contact_ms[broker_id] = now_ms - self.timeout_ms

    def stood_still(self, silent_ms: int) -> None:
        """Prolong every session by the time in which this process was stopped: it read no heartbeats then."""
        for broker_id in self.last_contact_ms:
            self.last_contact_ms[broker_id] += silent_ms

    def forget(self, broker_id: int) -> None:
        self.last_contact_ms.pop(broker_id, None)
        self.applied.pop(broker_id, None)
        self.settled.discard(broker_id)
        self.disconnected.discard(broker_id)
        self.shut_down_offset.pop(broker_id, None)
        self.logs.forget(broker_id)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        """Return whether another incarnation of a broker must wait, because the session and the connection of this one last."""
        if broker_id in self.disconnected:
            return False
        last = self.last_contact_ms.get(broker_id)
        return last is not None and now_ms - last < self.timeout_ms

    def stale(self, cluster: ClusterImage, now_ms: int) -> list[int]:
        """Return the unfenced brokers whose session has expired; the session of a broker not heard from begins now."""
        return [
            broker.id
            for broker in cluster.live_brokers()
            if self.last_contact_ms.setdefault(broker.id, now_ms) + self.timeout_ms <= now_ms
        ]

    def __repr__(self) -> str:
        return f"<BrokerSessions brokers={sorted(self.last_contact_ms)}>"
