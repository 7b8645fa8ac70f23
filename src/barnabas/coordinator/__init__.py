"""The coordinators: state machines that live in the partitions of internal topics (control plane, pure).

A coordinator owns one shard of state per partition it leads. It never changes durable state while it handles a request:
it returns records and a response, `CoordinatorRuntime` appends the records, hands them back through `replay`, and lets
the response go when they are committed. Loading a partition after an election is the same `replay`, from the log.

Here are the fronts, which the APIs call; the folders hold what is behind them, those further down knowing nothing of those further up:

    group_coordinator, group_shard, and by type: streams_service, share_group_service;  share_coordinator;  transaction_coordinator
    consumer/  streams/  share/  transaction/
    classic/                                      which the others know, because a group can change its type
    group/                                        what groups of every type share
    runtime/                                      the machine that all of them live on

Reading order: `runtime/result` (what an operation returns), `runtime/coordinator_runtime` (the machine, with `shard_context` and
`shard_loader`), `runtime/coordinator_log` (the seam to the log), `group_coordinator`, `group_shard` (one shard of it), `group/group`
(what groups of every type answer), `group/offset_manager` (their committed offsets), then by type:

    classic      `classic_groups`: `join_group`, `rebalance`, `sync_group`, `group_membership`
    consumer     `consumer_groups`: `consumer_group_heartbeat`, its `consumer_group_steps`, `assignor`, `current_assignment`;
                 `consumer_group_classic` and `group_migration` between the two
    streams      `streams_groups`: `streams_heartbeat`, `streams_target_assignment`, `streams_reconciliation`
    share        `share_groups`: `share_group_step`, `share_assignor`; delivery state: `share_coordinator_shard`
    transaction  `transaction_shard`: `transaction_metadata`, `transaction_markers`
"""
