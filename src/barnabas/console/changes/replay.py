"""Records of a topic that are sent to another one: `barnabas replay`, so many with each form.

The preview reads the records, and fixes where this form begins and stops in each partition. It stops before a transaction that is open.
The engine notes how far a replay is, so the next form or the command goes on there, to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import NamedTuple

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import LibraryConnection, connected, connection_of
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.log_places import places_of
from barnabas.cli.named_replay import (
    COLUMNS,
    Choice,
    continued,
    default_name,
    line_of,
    losses,
    new_replay,
    partitions_of,
)
from barnabas.cli.output import Found, found_rows
from barnabas.cli.record_filter import RECORD_FILTERS, parse_filter
from barnabas.cli.sending_once import create_state_topic, explained_library, transactional_producer
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin, TopicMetadata
from barnabas.client.cuts import is_valid_cut_name
from barnabas.client.offsets import READ_COMMITTED
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.record import Record
from barnabas.retries.replay import records_left, transactional_id
from barnabas.retries.replay import replay as send
from barnabas.retries.replayed import STATE_TOPIC, Progress
from barnabas.words.printable import printable

SENT_MAX = 10_000
"""So many are sent while a browser waits."""
READ_MAX = 200_000
"""So many are read for a filter that few of them pass."""
PARTITIONS_MAX = 1_000
"""The form of a preview has the offsets of each."""
FIELDS = (
    Field("topic", "Topic", is_required=True),
    Field("from", "From", hint="a cut, -1h, 47, start, or a range: 5:7", is_required=True),
    Field("until", "Until", hint="where the topic ends now"),
    Field("to", "Topic to send them to", is_required=True),
    Field(
        "filters",
        "Only those with, a line each",
        kind="lines",
        hint="key=K, value=PART, header=NAME:VALUE or partition=N",
        is_private=True,
    ),
    Field("name", "Name of the replay", hint="TOPIC-to-TOPIC"),
    Field("places", "Offsets of the preview", kind="hidden"),
)
_Offsets = Mapping[int, int]


class Part(NamedTuple):
    """The records that one form sends.

    Attributes:
        begun: how far the replay is before.
        done: how far it is afterwards.
        until: by partition, where the form stops.
        is_cut: there are more records than one form sends.
    """

    begun: Progress
    done: Progress
    until: _Offsets
    is_cut: bool

    @property
    def sent(self) -> int:
        """How many records the form sends."""
        return self.done.written - self.begun.written

    @property
    def left(self) -> int:
        """How many offsets are left for another form."""
        return sum(end - self.until[each] for each, (_, end) in self.begun.partitions.items())

    def notes(self) -> list[str]:
        """Return sentences about what was sent before, and what is left."""
        notes = ["each record is sent once, also if another run of this replay sends it first"]
        if self.begun.read:
            notes.append(
                f"earlier runs have read {counted(self.begun.read, 'record')} and sent {self.begun.written}:"
                " the counts have them, too"
            )
        if self.left:
            why = f"one form sends {SENT_MAX} records and reads {READ_MAX}" if self.is_cut else "a transaction is open"
            notes.append(
                f"{why}: {counted(self.left, 'offset')} {'is' if self.left == 1 else 'are'} left for the same replay"
                " again, or for the command"
            )
        return notes

    def places(self) -> str:
        """Return the offsets for the form of the preview."""
        return " ".join(
            f"{each}:{at}:{self.until[each]}:{end}" for each, (at, end) in sorted(self.begun.partitions.items())
        )


def replay(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan what one form sends of a replay; the preview fixes it."""
    topic, to = given.required("topic", "the topic"), given.required("to", "the topic to send them to")
    choice = Choice(
        given.required("from", "where to begin").strip(),
        given.text("until").strip() or None,
        tuple(given.lines("filters")),
    )
    name = given.text("name").strip() or default_name(topic, to)
    if topic == to:
        raise BadForm(f"topic {printable(topic)} cannot be replayed onto itself")
    if not is_valid_cut_name(name):
        raise BadForm(f"“{printable(name)}” is not a valid name: use letters, digits, “.”, “_” and “-”")
    chosen = parse_filter(choice.filters, RECORD_FILTERS)
    new, source = new_replay(admin, name, topic, to, choice)
    _require_few(source)
    with _reading(admin) as (consumer, library):
        has_notes = isinstance(admin.describe_topics([STATE_TOPIC])[STATE_TOPIC], TopicMetadata)
        stored = continued(consumer, library, new) if has_notes else None
        if stored is not None and stored.is_finished:
            raise Failure(
                f"replay {name} is finished: it has sent {counted(stored.written, 'record')}",
                "another name begins another",
            )
        begun, most = _begun(admin, source, choice, stored or new, given, is_new=stored is None)
        part, lost = _part(admin, consumer, begun, most, chosen)

    def carried_out(admin: Admin, given: Given) -> Done:
        create_state_topic(admin, STATE_TOPIC)
        with (
            _reading(admin) as (consumer, library),
            # It is there before the notes are read: no other run of the name goes on behind it.
            closing(transactional_producer(connection_of(admin), transactional_id(name))) as producer,
        ):
            forwarder = Forwarder(producer)
            if continued(consumer, library, new) != stored:
                raise Failure(f"replay {name} went on since the preview", "look at a new one")
            progress = _copy(part.begun)
            send(consumer, forwarder, progress, lambda each: each if chosen(each) else None, until=part.until)
        status = "sent" if progress.is_finished else "sent in part"
        return Done(_row(progress, status), notes=part.notes()[1:])

    return Planned(
        f"Send {counted(part.sent, 'record')} of {printable(topic)} to {printable(to)}",
        f"topic {to}",
        Done(_row(part.done, "would be sent"), notes=[*part.notes(), *lost]),
        carried_out,
        [("partitions", "From where to where", _partitions(part))],
        to,
        fixed={"places": part.places()},
        basis=[part.done.read, part.done.written, part.places(), begun.source_id, begun.target_id],
        after=("change/replay", _same(given, name)) if part.left else ("topic", {"name": to}),
        command=line_of(begun),
    )


def _require_few(source: TopicMetadata) -> None:
    """Require a topic whose offsets a form can have.

    Raises:
        Failure: it has too many partitions.
    """
    count = len(source.partitions)
    if count > PARTITIONS_MAX:
        raise Failure(
            f"topic {source.name} has {count} partitions, and the console replays {PARTITIONS_MAX}",
            f"`barnabas replay {source.name} --from start --to TOPIC` sends all",
        )


@contextmanager
def _reading(admin: Admin) -> Iterator[tuple[Consumer, AdminClient]]:
    """Yield the library's clients.

    Raises:
        Failure: the library raised an error.
    """
    connection: LibraryConnection = connection_of(admin)
    consumer: Consumer = connected(Consumer, connection, (), {**READER_SETTINGS, "group.id": "barnabas-replay"})
    with (
        closing(consumer),
        explained_library("the replay was interrupted: the same replay again goes on"),
    ):
        yield consumer, connected(AdminClient, connection, (), {})


def _begun(
    admin: Admin, source: TopicMetadata, choice: Choice, progress: Progress, given: Given, *, is_new: bool
) -> tuple[Progress, _Offsets]:
    """Return a replay with its offsets, and where the preview lets the form stop if it is about the same."""
    fixed = _fixed(given.text("places"), len(source.partitions))
    if is_new and not fixed:
        places = places_of(admin, source, choice.begin, choice.end, begin_option="“From”", end_option="“Until”")
        return replace(progress, partitions=places), {}
    places = {each: (at, end) for each, (at, _, end) in fixed.items()}
    begun = replace(progress, partitions=places) if is_new else progress
    is_same = begun.partitions == places
    return begun, {each: until for each, (_, until, _) in fixed.items()} if is_same else {}


def _part(
    admin: Admin, consumer: Consumer, begun: Progress, most: _Offsets, chosen: Callable[[Record], bool]
) -> tuple[Part, list[str]]:
    """Read what a form sends; return it, with a sentence for each partition that lost records.

    Args:
        most: by partition, where to stop; without it where the records may end that are read now.

    Raises:
        Failure: a partition has no leader.
        KafkaException: it cannot be read.
    """
    bounds = log_bounds(admin, partitions_of(begun), READ_COMMITTED)
    stops = {}
    for where, (_, stable) in bounds.items():
        if stable is None:
            raise Failure(f"partition {where} has no leader now", f"`barnabas topic describe {where.topic}` says why")
        at, end = begun.partitions[where.partition]
        stops[where.partition] = max(at, min(end, stable))
    until = {each: min(stop, most.get(each, stop)) for each, stop in stops.items()}
    done = _copy(begun)
    with closing(records_left(consumer, _copy(begun), until)) as records:
        for record in records:
            is_wanted = chosen(record)
            if done.read - begun.read == READ_MAX or (is_wanted and done.written - begun.written == SENT_MAX):
                until = {each: at for each, (at, _) in done.partitions.items()}
                break
            done.take(record, is_written=is_wanted)
    is_cut = until != stops
    return Part(begun, done, until, is_cut), losses(begun, bounds)


def _fixed(text: str, partitions: int) -> dict[int, tuple[int, int, int]]:
    """Return where the preview begins, stops, and where the replay ends, by partition.

    Raises:
        BadForm: it is not what a preview says.
    """
    try:
        rows = [tuple(map(int, each.split(":"))) for each in text.split()]
        found = {partition: (at, until, end) for partition, at, until, end in rows}
    except ValueError:
        found = {-1: (0, 0, 0)}
    if found and (
        set(found) != set(range(partitions))
        or any(not 0 <= at <= until <= end < 2**63 for at, until, end in found.values())
    ):
        raise BadForm("the offsets of the preview are not those of this topic")
    return found


def _copy(progress: Progress) -> Progress:
    return replace(progress, partitions=dict(progress.partitions))


def _row(progress: Progress, status: str) -> Found:
    row = (progress.name, progress.source, progress.target, progress.read, progress.written, status)
    return found_rows(COLUMNS, [row], hidden_first=("NAME",))


def _partitions(part: Part) -> Done:
    rows = [(each, at, part.until[each], end) for each, (at, end) in sorted(part.begun.partitions.items()) if at < end]
    return Done(found_rows(("PARTITION", "NEXT", "UNTIL", "END"), rows))


def _same(given: Given, name: str) -> dict[str, str]:
    """Return the fields of the same replay, for its next form."""
    return {**{each.name: given.text(each.name) for each in FIELDS if each.kind != "hidden"}, "name": name}
