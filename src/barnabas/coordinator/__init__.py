"""The machine that every coordinator lives on; the coordinators are the rooms `group`, `transaction` and `share`.

A coordinator owns one shard of state per partition it leads. It never changes durable state while it handles a request:
it returns records and a response, `CoordinatorRuntime` appends the records, hands them back through `replay`, and lets
the response go when they are committed. Loading a partition after an election is the same `replay`, from the log.

Reading order: `result` (what an operation returns), `coordinator_runtime` (the machine, with `shard_context` and `shard_loader`),
`coordinator_log` (the seam to the log). `partition_for` says which partition a key belongs to.
"""
