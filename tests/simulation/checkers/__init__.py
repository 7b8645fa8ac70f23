"""One property a module; each `check(history)` returns what it found wrong, in words, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.checkers import (
    committed_offsets,
    compaction,
    created_topics,
    dense_offsets,
    durability,
    equal_images,
    exactly_once_in_order,
    failed_directories,
    identical_replicas,
    linear_settings,
    linear_topics,
    log_start,
    monotonic_ends,
    offsets_by_time,
    one_owner,
    permitted_refusals,
    progress,
    recovery,
    recreated_topic,
    retention,
    shared_records,
    single_leader,
    steady_commits,
    steady_reading,
    unclean_elections,
    whole_transactions,
)
from tests.simulation.history import History

ALL: dict[str, Callable[[History], list[str]]] = {
    "durability": durability.check,
    "exactly_once_in_order": exactly_once_in_order.check,
    "dense_offsets": dense_offsets.check,
    "committed_offsets": committed_offsets.check,
    "steady_commits": steady_commits.check,
    "whole_transactions": whole_transactions.check,
    "created_topics": created_topics.check,
    "identical_replicas": identical_replicas.check,
    "monotonic_ends": monotonic_ends.check,
    "equal_images": equal_images.check,
    "single_leader": single_leader.check,
    "progress": progress.check,
    "recreated_topic": recreated_topic.check,
    "recovery": recovery.check,
    "permitted_refusals": permitted_refusals.check,
    "one_owner": one_owner.check,
    "log_start": log_start.check,
    "linear_topics": linear_topics.check,
    "linear_settings": linear_settings.check,
    "steady_reading": steady_reading.check,
    "shared_records": shared_records.check,
    "offsets_by_time": offsets_by_time.check,
    "retention": retention.check,
    "compaction": compaction.check,
    "unclean_elections": unclean_elections.check,
    "failed_directories": failed_directories.check,
}
