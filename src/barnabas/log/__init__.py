"""The log room: partitions in Kafka's own files. Whole batches are appended and read by position.

`partition_log.PartitionLog` is one partition, `log_manager.LogManager` is one data directory of them. A log appends
through its `log_appender` and keeps its files in `local_log`: `log_segment`, `offset_index`, `time_index` (both an `index_file`),
`transaction_index`, `producer_state`, `leader_epoch_cache`, `checkpoints`. All of them use files only through
`disk.Disk`, so that tests can pass a simulated disk.
"""
