"""Deliberate bugs for what only some worlds have: share groups, wide producers, a topic that several clients create and delete,
nodes with several directories.

They stand in one table with `deliberate_bugs_of_clusters`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.log.errors import KafkaStorageError, OutOfOrderSequence
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import BatchMetadata
from barnabas.metadata import offline_directories
from barnabas.metadata.controller_request import ControllerRequest
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.protocol.messages import DeleteTopicsResponse
from barnabas.replication.directory_failures import DirectoryFailures
from barnabas.share.acknowledgement import Change
from barnabas.share.in_flight import RecordState, Run
from barnabas.share.share_partition import SharePartition
from barnabas.share.window import ShareWindow
from barnabas.steps import in_background
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import Switch, replaced, showing_all

_PERSIST: Any = vars(SharePartition)["_persist"]
_FINISH: Any = vars(QuorumController)["_finish"]
_CHECK = ProducerStateManager.check
_OFFSET_FOR_TIMESTAMP = PartitionLog.offset_for_timestamp
_RESTORED = ShareWindow.restored


def finish_before_the_write() -> Switch:
    """A leader answers an acknowledgement before it is written. Caught by shared_records, when the leader moves."""

    async def persist(self: SharePartition, changes: Iterable[Change]) -> None:
        in_background(_PERSIST(self, list(changes)), self._loop)

    return replaced(SharePartition, "_persist", persist)


def deliver_what_is_held() -> Switch:
    """A leader delivers a record that another member holds. Caught by shared_records."""
    may_be = (RecordState.AVAILABLE, RecordState.ACQUIRED)
    return replaced(Run, "is_available", property(lambda self: self.state in may_be and self.transition is None))


def skip_what_was_released() -> Switch:
    """A new leader begins behind all records that the group has seen. Caught by shared_records, when the leader moves."""

    def restored(start_offset: int, states: Any) -> ShareWindow:
        return _RESTORED(max([start_offset, *(last + 1 for _, last, _, _ in states)]), ())

    return replaced(ShareWindow, "restored", staticmethod(restored))


def forget_what_is_finished() -> Switch:
    """A new leader knows only where the group begins. Caught by shared_records, when the leader moves."""

    def restored(start_offset: int, states: Any) -> ShareWindow:
        return _RESTORED(start_offset, ())

    return replaced(ShareWindow, "restored", staticmethod(restored))


def delete_alone() -> Switch:
    """The controller answers a deletion before it is committed. Caught by linear_topics, when it is lost."""

    def finish(self: QuorumController, request: ControllerRequest, change: Any) -> None:
        _FINISH(self, request, change)
        if isinstance(change.result.response, DeleteTopicsResponse) and not request.future.done():
            request.future.set_result(change.result.response)

    return replaced(QuorumController, "_finish", finish)


def accept_a_gap() -> Switch:
    """A leader takes a batch of a producer whose former one is missing. Caught by exactly_once_in_order, when that one comes."""

    def check(self: ProducerStateManager, *args: Any, **named: Any) -> BatchMetadata | None:
        try:
            return _CHECK(self, *args, **named)
        except OutOfOrderSequence:
            return None

    return replaced(ProducerStateManager, "check", check)


def show_all_that_a_follower_has() -> Switch:
    """A follower shows consumers what it does not know to be committed. Caught by steady_reading."""
    return showing_all(lambda partition: not partition.is_leader)


def look_after_the_time() -> Switch:
    """An offset by time is that of the first record after the time, not at it. Caught by offsets_by_time."""

    def find(self: PartitionLog, timestamp: int, *more: Any, **how: Any) -> Any:
        return _OFFSET_FOR_TIMESTAMP(self, timestamp + 1, *more, **how)

    return replaced(PartitionLog, "offset_for_timestamp", find)


def hide_failed_directories() -> Switch:
    """A broker does not name the directories that have failed, and goes on leading. Caught by failed_directories."""
    return replaced(DirectoryFailures, "offline_ids", property(lambda self: []))


def keep_failed_directories_in_sync() -> Switch:
    """The controller notes which directories are left, and changes no partition. Caught by failed_directories."""
    return replaced(offline_directories, "_directory", lambda partition, broker_id: None)


def stop_for_any_directory() -> Switch:
    """A broker stops when any of its directories fails, as one with a single directory does. Caught by recovery."""

    def stop(self: DirectoryFailures, directory: Any, reason: str) -> None:
        self._replicas.stop_for_disk(KafkaStorageError(reason))

    return replaced(DirectoryFailures, "_take_offline", stop)


BUGS: dict[str, Bug] = {
    "hide_failed_directories": Bug(hide_failed_directories, 12, "has_directories"),
    "keep_failed_directories_in_sync": Bug(keep_failed_directories_in_sync, 12, "has_directories"),
    "stop_for_any_directory": Bug(stop_for_any_directory, 6, "has_directories"),
    "delete_alone": Bug(delete_alone, 24, "registrars"),
    "finish_before_the_write": Bug(finish_before_the_write, 24, "share_members"),
    "deliver_what_is_held": Bug(deliver_what_is_held, 6, "share_members"),
    "forget_what_is_finished": Bug(forget_what_is_finished, 12, "share_members"),
    "accept_a_gap": Bug(accept_a_gap, 6, "wide_partitions"),
    "show_all_that_a_follower_has": Bug(show_all_that_a_follower_has, 24, "has_racks"),
    "look_after_the_time": Bug(look_after_the_time, 6, "has_racks"),
    "skip_what_was_released": Bug(skip_what_was_released, 24, "share_members"),
}
