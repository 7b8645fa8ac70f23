"""The machine of all coordinators, which are the rooms `group`, `transaction` and `share`.

A coordinator has one shard of state per partition that it leads. It never changes durable state while it handles a request: it
returns records and a response. `CoordinatorRuntime` appends the records, passes them to `replay`, and sends the response when they
are committed. Loading a partition after an election is the same `replay`, from the log.

Reading order: `result` (what an operation returns), `coordinator_runtime` (the machine, with `shard_context`, `pending_write` and
`shard_loader`), `coordinator_log` (the interface to the log).
"""
