"""The mirror: reads the source, writes the target, moves groups, and looks for new topics and partitions.

Each batch of records is one transaction at the target. Before it commits, the mirror asks both clusters for the ids of its topics: a topic
that still has its id after its records were fetched is the topic that they were fetched from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException

from barnabas.client.admin import EARLIEST, LATEST, Admin, TopicMetadata
from barnabas.mirror.groups import GroupOffsets
from barnabas.mirror.notes import (
    STATE_TOPIC,
    Kept,
    Note,
    Origin,
    Where,
    forgotten_note,
    origin_note,
    partition_note,
    read_notes,
)
from barnabas.mirror.opened_partitions import (
    begin_offsets,
    check_id,
    check_ids,
    check_is_ours,
    check_target,
    offsets_at,
    place_at_source,
)
from barnabas.mirror.progress import Progress
from barnabas.mirror.runs import runs_of
from barnabas.mirror.source_records import Arrived, SourceRecords
from barnabas.mirror.stopped import MirrorStopped
from barnabas.mirror.target_topics import TargetTopics, is_copied, settings_known
from barnabas.protocol.primitives import uuid_to_str
from barnabas.retries.committed_records import read_committed
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.record import Output, Record
from barnabas.retries.replay import Change

_LOOK_SECONDS = 0.2
_REJECTED = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise max.message.bytes of the topic at the target, and run the same command",
    KafkaError.INVALID_TIMESTAMP: "remove the limits message.timestamp.… of the topic at the target, and run the same command",
    KafkaError.INVALID_RECORD: "a compacted topic rejects records without a key: change its cleanup.policy at the target",
}
"""Errors of a record that the target never takes, and what to do."""
_REFRESH_SECONDS = 5.0
_GROUPS_SECONDS = 5.0
_FORGET_SECONDS = 600.0
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Clients:
    """The clients of a mirror.

    Attributes:
        source_consumer: with `SOURCE_SETTINGS`.
        target_consumer: with `READER_SETTINGS`.
        forwarder: of a producer of the target with `transactional_id`, made before anything else.
    """

    source: Admin
    source_consumer: Consumer
    target: Admin
    target_consumer: Consumer
    forwarder: Forwarder


@dataclass(frozen=True)
class Wanted:
    """The choice of a mirror: topics, records, groups.

    Attributes:
        topic: whether it copies a topic of this name.
        change: returns the record to write; None writes all as they are.
        choice: the options that change records, as they were typed.
        since_ms: where partitions begin that have no notes; None is the start of their logs.
        until_end: end at the offsets that the source has now.
        groups: move groups, too.
        skip_deleted: go on after records that were deleted before they were copied.
    """

    topic: Callable[[str], bool]
    change: Change | None = None
    choice: str = ""
    since_ms: int | None = None
    until_end: bool = False
    groups: bool = True
    skip_deleted: bool = False


def transactional_id(name: str) -> str:
    """Return the transactional id of a mirror."""
    return f"barnabas-mirror-{name}"


class Mirror:
    """A mirror of one name; the state topic exists.

    Args:
        source_id: the id of the source's cluster.
        say: prints a line.
        clock: returns seconds that only grow.

    Attributes:
        partitions: how far each partition is.
    """

    def __init__(
        self,
        name: str,
        source_id: str,
        clients: Clients,
        wanted: Wanted,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._source_id = source_id
        self.partitions: dict[Where, Progress] = {}
        self._clients = clients
        self._wanted = wanted
        self._say = say
        self._clock = clock
        self._kept = Kept()
        self._ids: dict[str, tuple[str, str]] = {}
        """The topics' ids at the source and at the target."""
        self._missing: set[str] = set()
        self._ours_until: dict[Where, int] = {}
        """The target has no foreign record before these offsets."""
        self._left: dict[Where, int] = {}
        """With `until_end`: the partitions that are not at their ends yet, and these ends."""
        self._source = SourceRecords(clients.source_consumer)
        self._topics = TargetTopics(clients.source, clients.target, settings_known(clients.target, STATE_TOPIC), say)
        self._groups = GroupOffsets(clients.source, clients.target, say)

    def __repr__(self) -> str:
        return f"<Mirror {self.name} partitions={len(self.partitions)}>"

    def lags(self) -> dict[Where, int]:
        """Return how many offsets of the source each partition has not copied, as far as the consumer knows; any thread may ask."""
        found = {}
        for where, progress in list(self.partitions.items()):
            end = self._source.log_end(where)
            found[where] = 0 if end is None else max(end - progress.next, 0)
        return found

    def run(self) -> None:
        """Copy until it is done, or for ever.

        Raises:
            MirrorStopped: somebody must act.
            KafkaError, KafkaException: a cluster fails. What was committed stays, and another run goes on.
        """
        self._begin()
        refresh_at = forget_at = groups_at = self._clock()
        patient_until = self._clock() + _PATIENCE_SECONDS
        while self._left or not self._wanted.until_end:
            arrived = self._source.look(_LOOK_SECONDS)
            if self._take(arrived):
                patient_until = self._clock() + _PATIENCE_SECONDS
            elif self._left and self._clock() > patient_until:
                topic, partition = min(self._left)
                text = (
                    f"cannot read {topic}-{partition} of the source to its end; `barnabas txn doctor {topic}` there says what"
                    " holds readers back"
                )
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
            if arrived.unknown or self._clock() >= refresh_at:
                self._refresh()
                refresh_at = self._clock() + _REFRESH_SECONDS
            if self._clock() >= forget_at:
                self._forget()
                forget_at = self._clock() + _FORGET_SECONDS
            if self._clock() >= groups_at:
                began = self._clock()
                self.move_groups()
                # Ten thousand groups take longer: nine tenths of the time are for records.
                groups_at = self._clock() + max(_GROUPS_SECONDS, 9 * (self._clock() - began))
        self.move_groups()

    def move_groups(self) -> None:
        """Move the offsets of groups, unless groups are not wanted.

        Raises:
            KafkaError: a cluster does not answer.
        """
        if self._wanted.groups and self.partitions:
            self._groups.move(self.partitions)

    # Topics and partitions
    def _begin(self) -> None:
        clients = self._clients
        state = (STATE_TOPIC, 0)
        records = read_committed(clients.target_consumer, {state: 0}, offsets_at(clients.target, [state], LATEST))
        try:
            self._kept = read_notes(records, self.name)
        except ValueError as error:
            raise MirrorStopped(str(error), "`barnabas --version` says which this is") from None
        origin = Origin(self._source_id, self._wanted.choice)
        kept = self._kept.origin
        if kept is None:
            clients.forwarder.send([origin_note(self.name, origin)], [])
        elif kept.source != origin.source:
            raise MirrorStopped(
                f"mirror {self.name} copies another cluster, {kept.source}; this source is {origin.source}",
                "give the source that it began with, or another --name",
            )
        elif kept.choice != origin.choice:
            raise MirrorStopped(
                f"mirror {self.name} began {f'with {kept.choice}' if kept.choice else 'without --mask'}",
                "give the same option, or another --name",
            )
        self._refresh()
        if not self.partitions:
            self._say("no topic of the source matches")
        if self._wanted.until_end:
            ends = offsets_at(clients.source, self.partitions, LATEST)
            self._left = {where: end for where, end in ends.items() if self.partitions[where].next < end}

    def _refresh(self) -> None:
        """Look for topics and partitions that are new or gone."""
        matching = {
            each.name: each
            for each in self._clients.source.list_topics()
            if is_copied(each) and self._wanted.topic(each.name)
        }
        known = {topic for topic, _ in self.partitions}
        for name in known & matching.keys():
            check_id(matching[name], self._ids[name][0], "source")
        # A broker that has just started may not know a topic yet: it is gone if it is missing twice.
        gone = (known - matching.keys()) & self._missing
        self._missing = known - matching.keys()
        for name in sorted(gone):
            self._leave(name)
        grown = [
            topic
            for topic in matching.values()
            if any((topic.name, each) not in self.partitions for each in range(len(topic.partitions)))
        ]
        may_open = not self._left  # with `until_end` what is new is after the end
        if grown and may_open:
            self._open(grown)
        if gone or (grown and may_open):
            self._source.read_from({where: each.next for where, each in self.partitions.items()})

    def _leave(self, name: str) -> None:
        if self._wanted.until_end:
            raise MirrorStopped(
                f"topic {name} was deleted at the source while it was copied", "the same command copies the others"
            )
        self._say(f"topic {name} was deleted at the source: its copy stays")
        for where in [each for each in self.partitions if each[0] == name]:
            del self.partitions[where]

    def _open(self, topics: list[TopicMetadata]) -> None:
        """Begin or continue the partitions of topics that are not open yet."""
        clients, kept = self._clients, self._kept.partitions
        new: list[Where] = []
        for topic in topics:
            places = [(topic.name, each) for each in range(len(topic.partitions))]
            known = [each.note for where, each in self.partitions.items() if where[0] == topic.name]
            known += [note for where, notes in kept.items() if where[0] == topic.name for note in notes[-1:]]
            for note in known:
                check_id(topic, note.source_id, "source")
            if topic.name in self._ids:
                check_id(topic, self._ids[topic.name][0], "source")
            target = self._topics.prepare(topic, is_mirrored=bool(known))
            check_ids(topic, target, known)
            self._ids[topic.name] = uuid_to_str(topic.topic_id), uuid_to_str(target.topic_id)
            new += [where for where in places if where not in self.partitions]
        begin = begin_offsets(clients.source, [where for where in new if where not in kept], self._wanted.since_ms)
        notes = {where: Note(offset, offset, *self._ids[where[0]]) for where, offset in begin.items()}
        opened = {where: Progress(kept.get(where) or [notes[where]]) for where in new}
        self._ours_until.update(check_target(clients.target, clients.target_consumer, opened))
        if notes:
            clients.forwarder.send([partition_note(self.name, where, note) for where, note in notes.items()], [])
        self._place_at_source(opened)
        self.partitions.update(opened)

    def _place_at_source(self, partitions: dict[Where, Progress]) -> None:
        """Check that the source has the positions; note those that skip deleted records."""
        skip_deleted = self._wanted.skip_deleted
        skipped = place_at_source(self._clients.source, partitions, skip_deleted=skip_deleted, say=self._say)
        notes = {where: partitions[where].note_with(partitions[where].next, ()) for where in skipped}
        if notes:
            self._clients.forwarder.send([partition_note(self.name, where, note) for where, note in notes.items()], [])
        for where, note in notes.items():
            partitions[where].take(note, (), copied=0, dropped=0)

    def _forget(self) -> None:
        """Delete the notes about records that the target has deleted."""
        starts = offsets_at(self._clients.target, self.partitions, EARLIEST)
        gone = [
            forgotten_note(self.name, where, first)
            for where, progress in self.partitions.items()
            for first in progress.forgettable(starts[where])
        ]
        if gone:
            self._clients.forwarder.send(gone, [])

    # Records
    def _take(self, arrived: Arrived) -> bool:
        """Copy what arrived; return whether the copy went on."""
        records: dict[Where, list[Record]] = {}
        for record in arrived.records:
            where = (record.topic, record.partition)
            if where not in self.partitions or record.offset < self.partitions[where].next:
                continue
            if record.offset < self._end_of(where, record.offset + 1):
                records.setdefault(where, []).append(record)
        if records:
            self._copy(records)
        for where, end in arrived.ends.items():
            if where in self.partitions:
                self.partitions[where].pass_over(self._end_of(where, end))
        for record in arrived.records:
            where = (record.topic, record.partition)
            if where in self._left and record.offset >= self._left[where]:
                self.partitions[where].pass_over(self._left[where])
        if lost := {where: self.partitions[where] for where in arrived.lost if where in self.partitions}:
            self._place_at_source(lost)
            self._source.read_from({where: each.next for where, each in self.partitions.items()})
        before = len(self._left)
        self._left = {where: end for where, end in self._left.items() if self.partitions[where].next < end}
        return bool(records) or len(self._left) < before

    def _end_of(self, where: Where, end: int) -> int:
        """Return the offset where the copy of a partition ends now: `end`, or an earlier one with `until_end`."""
        if not self._wanted.until_end:
            return end
        return min(end, self._left.get(where, self.partitions[where].next))

    def _copy(self, records: dict[Where, list[Record]]) -> None:
        outputs: list[Output] = []
        copied: dict[Where, list[int]] = {}
        for where, each in records.items():
            copied[where] = []
            for record in each:
                changed = record if self._wanted.change is None else self._wanted.change(record)
                if changed is not None:
                    copied[where].append(record.offset)
                    outputs.append(_output(record, changed))
        taken = {}

        def notes(offsets: list[int]) -> list[Output]:
            self._check_topics({topic for topic, _ in records})
            found, at = [], 0
            for where, sources in copied.items():
                targets = offsets[at : at + len(sources)]
                at += len(sources)
                runs = runs_of(zip(sources, targets, strict=True))
                if targets:
                    self._check_ours(where, targets[0])
                note = self.partitions[where].note_with(records[where][-1].offset + 1, runs)
                taken[where] = note, runs
                found.append(partition_note(self.name, where, note))
            return found

        try:
            self._clients.forwarder.send_placed(outputs, notes)
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() not in _REJECTED:
                raise
            raise MirrorStopped(
                f"the target rejected a record of partition {error.str()}", _REJECTED[error.code()]
            ) from None
        for where, (note, runs) in taken.items():
            written = len(copied[where])
            self.partitions[where].take(note, runs, copied=written, dropped=len(records[where]) - written)
            if runs:
                self._ours_until[where] = self.partitions[where].runs.end + 1  # the transaction's marker

    def _check_topics(self, names: set[str]) -> None:
        """Check that topics have their ids, at both clusters.

        Raises:
            MirrorStopped: one was deleted; it may have been created again.
        """
        clients = self._clients
        for number, (admin, side) in enumerate(((clients.source, "source"), (clients.target, "target"))):
            found = admin.describe_topics(names)
            for name in sorted(names):
                topic = found[name]
                if not isinstance(topic, TopicMetadata):
                    raise MirrorStopped(
                        f"topic {name} was deleted at the {side} while it was copied", "--topics chooses the others"
                    )
                check_id(topic, self._ids[name][number], side)

    def _check_ours(self, where: Where, first: int) -> None:
        """Check that there are no foreign records at the target since the last transaction."""
        known = self._ours_until[where]
        if first > known:
            check_is_ours(self._clients.target_consumer, {where: (known, first)})


def _output(record: Record, changed: Record) -> Output:
    """Return the record to write: in the partition of the source's one, also if a mask has changed its key."""
    return Output(
        record.topic, changed.value, changed.key, changed.headers, record.partition, max(changed.timestamp_ms, 0)
    )
