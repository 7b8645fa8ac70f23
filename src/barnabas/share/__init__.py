"""Share groups' queues (KIP-932): the delivery state of their partitions, and the delivery of records to their members.

Reading order: `share_partition_manager`, `share_partition` (`records`, `acquisition`, `window`); `share_coordinator` and
`share_coordinator_shard`, which keep the state.
"""
