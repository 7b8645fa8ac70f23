"""The machine that every coordinator runs on; the coordinators are in the rooms `group`, `transaction` and `share`.

A coordinator owns one shard of state per partition it leads. It never changes durable state while it handles a request:
it returns records and a response. `CoordinatorRuntime` appends the records, passes them to `replay`, and gives out the response when
they are committed. Loading a partition after an election is the same `replay`, from the log.

Reading order: `result` (what an operation returns), `coordinator_runtime` (the machine, with `shard_context`, `pending_write` and
`shard_loader`), `coordinator_log` (the seam to the log). `partition_for` returns the partition that a key belongs to.
"""
