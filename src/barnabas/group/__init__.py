"""The group coordinator: what groups of every type share, and each type in a folder of its own.

Reading order: `group_coordinator`, `group_shard` (one shard of it), `group` (what groups of every type answer), `offset_manager`
(their committed offsets), then by type:

    classic/     `groups`: `join_group`, `rebalance`, `sync_group`, `membership`;
                 the other types know it, because a group can change its type
    consumer/    `groups`: `heartbeat`, its `steps`, `assignor`, `current_assignment`; `classic_members` and `migration` between the two
    streams/     `service`; `groups`: `heartbeat`, `target_assignment`, `reconciliation`
    share/       `service`; `groups`: `step`, `assignor`
"""
