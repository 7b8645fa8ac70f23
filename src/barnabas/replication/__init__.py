"""The replication room (data plane): which replicas this broker holds, who may append, and who waits for what.

`replica_manager.ReplicaManager` is the door; `partition.Partition` is one partition as its leader sees it, `purgatory` holds
the requests that wait, `fetch_reader` reads for a Fetch request, `fetch_session` remembers incremental fetches (KIP-227).
"""
