"""The log room (data plane): partitions as Kafka's own files, appended to by whole batches and read by position.

`partition_log.PartitionLog` is one partition, `log_manager.LogManager` is one data directory of them. Everything below
them is a noun with a file of its own: `log_segment`, `offset_index`, `time_index` (both an `index_file`),
`transaction_index`, `producer_state`, `leader_epoch_cache`, `checkpoints`. Files are reached only through
`disk.Disk`, so that a simulated disk can stand in.
"""
