"""Deliberate bugs for the topics with settings of their own: retention, unclean elections.

They stand in one table with `deliberate_bugs_of_clusters`.
"""

from __future__ import annotations

from typing import Any

from barnabas.log import partition_log, retention
from barnabas.log.log_config import LogConfig
from barnabas.log.log_segments import LogSegments
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.partition_leaders import Elections
from barnabas.metadata.topics_image import TopicImage
from barnabas.replication import fetch_reader, replica_fetcher
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import Switch, replaced

_APPEND_FETCHED: Any = vars(replica_fetcher)["append_fetched"]
_BEYOND_BYTES: Any = vars(retention)["_beyond_bytes"]
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


BUGS: dict[str, Bug] = {
    "elect_uncleanly_everywhere": Bug(elect_uncleanly_everywhere, 12, "elects_uncleanly"),
    "hide_where_logs_part": Bug(hide_where_logs_part, 12, "elects_uncleanly"),
    "look_at_the_first_record": Bug(look_at_the_first_record, 12, "retention"),
    "make_too_much_room": Bug(make_too_much_room, 12, "retention"),
    "delete_what_is_not_committed": Bug(delete_what_is_not_committed, 24, "retention"),
    "keep_what_the_leader_has_deleted": Bug(keep_what_the_leader_has_deleted, 12, "retention"),
}
