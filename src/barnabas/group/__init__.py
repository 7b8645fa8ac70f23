"""The group coordinator: what groups of every type share, and one folder for each type.

Reading order: `group_coordinator`, `requests` (offsets, listing, deletion), `group_shard` (the groups of one partition), `group` (what
groups of every type have in common), `offset_manager` (their committed offsets). Then a type; the folders have the same modules:

    requests     what the API calls: `heartbeat(coordinator, request, sender)`, `describe`, …; for share groups `service`
    groups       the type's groups in one shard: operations, and how records move their state
    heartbeat    joining, staying, leaving (a classic group also has `join_group`, `sync_group`, `leave_group`)
    rebalance    what a heartbeat or join sets going (streams: `target_assignment`, `reconciliation`)
    group, member, records, timers

The other types know `classic`, because a group can change its type: `consumer.classic_members`, `consumer.migration`.
"""
