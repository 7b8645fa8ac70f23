"""Share groups (KIP-932): the delivery of records to their members, and the delivery state of their partitions.

Reading order: `share_partition_manager`, `share_partition` (`window`, `acquisition`, `acknowledgement`), `fetch`; then `persister`,
`share_coordinator` and `share_coordinator_shard`, which keep the state.
"""
