"""Which replica a consumer should read from: one in its own rack (KIP-392).

The leader answers a Fetch with the replica's id and no records, and the consumer then reads from that replica. The leader names a follower
only if it is in the ISR and its log has the fetch offset. Of several it names the one with the largest log end, then the one that was
caught up last. A consumer in the leader's rack stays at the leader.

Kafka loads any class that `replica.selector.class` names. Here it may name one of the two classes that come with Kafka:
`RackAwareReplicaSelector`, or `LeaderSelector`, which means the same as no class.

Source: Kafka's `RackAwareReplicaSelector`, `ReplicaManager.findPreferredReadReplica`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.metadata.cluster_image import BrokerRegistration
    from barnabas.replication.replica import Replica

__all__ = ["NO_REPLICA", "replica_in_rack"]

NO_REPLICA = -1


def replica_in_rack(
    partition: Partition, rack: str, fetch_offset: int, brokers: Mapping[int, BrokerRegistration], listener: str
) -> int:
    """Return the node id of the follower that a consumer should read from; -1 if it should stay at the leader.

    Args:
        rack: the consumer's.
        listener: the name of the listener that the consumer uses; a broker without it is not named.
    """
    followers = partition.followers
    leader = brokers.get(partition.leader)
    if followers is None or (leader is not None and leader.rack == rack):
        return NO_REPLICA

    def is_near(follower: Replica) -> bool:
        broker = brokers.get(follower.broker_id)
        return (
            broker is not None
            and not broker.fenced
            and broker.rack == rack
            and broker.listener(listener) is not None
            and follower.broker_id in partition.isr
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        )

    near = [follower for follower in followers.states() if is_near(follower)]
    if not near:
        return NO_REPLICA
    return max(near, key=lambda each: (each.log_end_offset, each.caught_up_ms, each.broker_id)).broker_id
