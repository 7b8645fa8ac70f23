"""Deliberate bugs for the topics with settings of their own: retention, compaction, unclean elections.

They stand in one table with `deliberate_bugs_of_clusters`.
"""

from __future__ import annotations

from typing import Any

from barnabas.log import cleaner, log_cleaner, partition_log, retention
from barnabas.log.cleanable_log import CleanableLog
from barnabas.log.cleaned_transactions import CleanedTransactions
from barnabas.log.cleaning_task import CleaningTask
from barnabas.log.log_config import LogConfig
from barnabas.log.log_segments import LogSegments
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.partition_leaders import Elections
from barnabas.metadata.topics_image import TopicImage
from barnabas.records.batch_filter import RecordSpan
from barnabas.records.record_batch import BatchHeader
from barnabas.replication import fetch_reader, replica_fetcher
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import Switch, replaced

_APPEND_FETCHED: Any = vars(replica_fetcher)["append_fetched"]
_BEYOND_BYTES: Any = vars(retention)["_beyond_bytes"]
Cleaning: Any = vars(cleaner)["_Cleaning"]
_STAYS: Any = vars(Cleaning)["_stays"]
_TASK_FOR: Any = vars(log_cleaner)["task_for"]
_MEASURE: Any = vars(log_cleaner)["measure"]
_READ_CONTROL_BATCH = CleanedTransactions.read_control_batch
_SETTINGS_OF: Any = vars(Elections)["_settings_of"]
_COUNT_DELETABLE: Any = vars(partition_log)["count_deletable"]


def look_at_the_first_record() -> Switch:
    """Retention takes a segment for as old as its first record. Caught by retention."""

    def beyond(segments: LogSegments, committed: int, config: LogConfig, now_ms: int) -> int:
        count = 0
        if config.retention_ms >= 0:
            while count < committed:
                first = segments.at(count).load_first_timestamp()
                if first is None or now_ms - first <= config.retention_ms:
                    break
                count += 1
        return count

    return replaced(retention, "_beyond_ms", beyond)


def make_too_much_room() -> Switch:
    """Retention deletes a segment more than it must. Caught by retention."""

    def beyond(segments: LogSegments, committed: int, config: LogConfig) -> int:
        found: int = _BEYOND_BYTES(segments, committed, config)
        return min(found + 1, committed) if found else 0

    return replaced(retention, "_beyond_bytes", beyond)


def delete_what_is_not_committed() -> Switch:
    """Retention deletes what followers may not have. Caught by monotonic_ends, when another one leads."""

    def count(segments: LogSegments, config: LogConfig, **known: Any) -> int:
        return int(_COUNT_DELETABLE(segments, config, **known | {"high_watermark": known["log_end_offset"]}))

    return replaced(partition_log, "count_deletable", count)


def keep_what_the_leader_has_deleted() -> Switch:
    """A follower does not follow its leader's log start. Caught by retention."""

    def append_fetched(log: PartitionLog, data: Any, leader_epoch: int) -> bool:
        data.log_start_offset = min(data.log_start_offset, log.log_start_offset)
        return bool(_APPEND_FETCHED(log, data, leader_epoch))

    return replaced(replica_fetcher, "append_fetched", append_fetched)


def elect_uncleanly_everywhere() -> Switch:
    """unclean.leader.election.enable=false has no effect. Caught by unclean_elections, and by durability.

    `elect_anybody` is another bug: there the controller believes the one that lacks records to be in sync.
    """

    def settings_of(self: Elections, topic: TopicImage) -> tuple[int, bool]:
        return _SETTINGS_OF(self, topic)[0], True

    return replaced(Elections, "_settings_of", settings_of)


def hide_where_logs_part() -> Switch:
    """A leader gives records to a follower that has others before them. Caught by identical_replicas."""
    return replaced(fetch_reader, "_diverging_epoch", lambda partition, log, wanted: None)


def drop_the_last_of_a_key() -> Switch:
    """The cleaner keeps of a key what is newer than the last record. Caught by compaction."""

    def stays(self: Cleaning, span: RecordSpan, header: BatchHeader) -> bool:
        return bool(_STAYS(self, span, header)) and (span.key is None or span.offset != self._map.get(span.key))

    return replaced(Cleaning, "_stays", stays)


def drop_tombstones_at_once() -> Switch:
    """A tombstone does not wait for delete.retention.ms. Caught by compaction."""

    def stays(self: Cleaning, span: RecordSpan, header: BatchHeader) -> bool:
        return bool(_STAYS(self, span, header)) and (span.has_value or span.offset > self._map.latest_offset)

    return replaced(Cleaning, "_stays", stays)


def forget_who_aborted() -> Switch:
    """The cleaner takes the records of aborted transactions for committed ones. Caught by compaction."""

    def task_for(*args: Any, **named: Any) -> CleaningTask:
        task: CleaningTask = _TASK_FOR(*args, **named)
        return task._replace(aborted=[])

    return replaced(log_cleaner, "task_for", task_for)


def clean_what_is_open() -> Switch:
    """The cleaner cleans up to the active segment, also what a transaction may still abort. Caught by compaction."""

    def measure(log: PartitionLog, cleaned_to: int | None, now_ms: int) -> CleanableLog:
        found: CleanableLog = _MEASURE(log, cleaned_to, now_ms)
        end = log.segments.active.base_offset
        dirty = sum(each.size for each in log.segments if found.first_dirty_offset <= each.base_offset < end)
        return found._replace(first_uncleanable_offset=end, cleanable_bytes=dirty)

    return replaced(log_cleaner, "measure", measure)


def drop_markers() -> Switch:
    """The cleaner removes the markers of transactions whose records stay. Caught by compaction, when a replica is read."""

    def read(self: CleanedTransactions, header: BatchHeader, key: bytes | None) -> bool:
        _READ_CONTROL_BATCH(self, header, key)
        return True

    return replaced(CleanedTransactions, "read_control_batch", read)


BUGS: dict[str, Bug] = {
    "drop_the_last_of_a_key": Bug(drop_the_last_of_a_key, 6, "compacts"),
    "drop_tombstones_at_once": Bug(drop_tombstones_at_once, 12, "compacts"),
    "forget_who_aborted": Bug(forget_who_aborted, 12, "compacts"),
    "clean_what_is_open": Bug(clean_what_is_open, 24, "compacts"),
    "drop_markers": Bug(drop_markers, 24, "compacts"),
    "elect_uncleanly_everywhere": Bug(elect_uncleanly_everywhere, 12, "elects_uncleanly"),
    "hide_where_logs_part": Bug(hide_where_logs_part, 12, "elects_uncleanly"),
    "look_at_the_first_record": Bug(look_at_the_first_record, 12, "retention"),
    "make_too_much_room": Bug(make_too_much_room, 12, "retention"),
    "delete_what_is_not_committed": Bug(delete_what_is_not_committed, 24, "retention"),
    "keep_what_the_leader_has_deleted": Bug(keep_what_the_leader_has_deleted, 12, "retention"),
}
