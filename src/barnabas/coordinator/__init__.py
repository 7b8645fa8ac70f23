"""The coordinators: state machines that live in the partitions of internal topics (control plane, pure).

A coordinator owns one shard of state per partition it leads. It never changes durable state while it handles a request:
it returns records and a response, `CoordinatorRuntime` appends the records, hands them back through `replay`, and lets
the response go when they are committed. Loading a partition after an election is the same `replay`, from the log.

Reading order: `runtime` (the machine, with `shard_context` and `shard_loader`), `result` (what an operation returns),
`coordinator_log` (the seam to the log), `group_coordinator` (the front of the groups), `group_shard` (one shard of it), `group`
(what groups of every type answer), then by type:

    classic      `classic_groups`: `join_group`, `rebalance`, `sync_group`, `group_membership`
    consumer     `consumer_groups`: `consumer_group_heartbeat`, its `consumer_group_steps`, `assignor`, `current_assignment`;
                 `consumer_group_classic` and `group_migration` between the two

`offset_manager` (committed offsets of all types), `rebalance_history` (what people want to know),
`producer_id_manager` (producer ids).
"""
