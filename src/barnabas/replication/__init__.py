"""Replication: the replicas of this broker, appends to them, reads of them, and the requests that wait for either.

Every call enters at `replica_manager.ReplicaManager`. `partition.Partition` is one replica. At the leader `partition_state` has the
in-sync replicas and a change of them, `followers` and `replica` how far the others are. `purgatory` holds the waiting requests,
`fetch_reader` reads for a Fetch request, `fetch_session` has the incremental fetches (KIP-227).

`replicated_partitions` keeps the replicas of several brokers alike. What this broker follows has a fetcher for each leader
(`replica_fetcher_manager`): `replica_fetcher` says what to ask for and applies the answers, and `replica_fetcher_loop` sends the requests.
What this broker leads has its ISR changes in `alter_partition_manager`.
"""
