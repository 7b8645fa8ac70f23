"""Replication: the replicas of this broker, appends to them, reads of them, and the requests that wait for either.

Every call enters at `replica_manager.ReplicaManager`. `partition.Partition` is one replica. At the leader `partition_state` has the
in-sync replicas and a change of them, `followers` and `replica` how far the others are. `purgatory` holds the waiting requests,
`fetch_reader` reads for a Fetch request, `fetch_session` has the incremental fetches (KIP-227).

At a follower `replica_fetcher` says what to ask the leader for and applies its answers, and `replica_fetcher_loop` sends the requests.
The broker does not start it yet.
"""
