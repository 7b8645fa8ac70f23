"""`barnabas txn`: list, describe, abort, doctor."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping

import click

from barnabas.cli.done import Done, failed
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, report_failures
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.session import Session, complete_topics, complete_transactional_ids, parse_words, session_options
from barnabas.cli.wording import as_typed
from barnabas.client.admin import (
    LATEST,
    Admin,
    OffsetAndTimestamp,
    ProducerState,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
    result,
)
from barnabas.client.offsets import READ_COMMITTED
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.sink.orphans import open_sinks
from barnabas.words.sink_names import sink_of
from barnabas.words.times import format_time_ms

NEVER_TIMES_OUT_MS = 0x7FFFFFFF
_PARTITION = re.compile(r"(?P<topic>.+):(?P<partition>\d+)")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))
_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
_DOCTOR_COLUMNS = (
    "TOPIC", "PARTITION", "STABLE-OFFSET", "END-OFFSET", "HELD-BACK", "PRODUCER", "TRANSACTIONAL-ID", "STATE", "SINCE", "OPEN-FOR",
    "ADVICE",
)  # fmt: skip
_DOCTOR_HIDDEN_FIRST = ("STABLE-OFFSET", "END-OFFSET", "PRODUCER", "SINCE", "STATE", "HELD-BACK")


@click.group()
def txn() -> None:
    """Transactions: list, describe, abort, find those that hold readers back."""


@txn.command(name="list")
@click.option("-s", "--state", "states", multiple=True, help="Only ids in this state, such as Ongoing; repeat.")
@click.option("--producer-id", "producer_ids", type=int, multiple=True, help="Only ids of this producer; repeat.")
@click.option("--running-longer-than", type=Duration(), help="Only transactions open longer than this: 10m.")
@click.option("--pattern", metavar="REGEX", help="Only ids that match as a whole.")
@session_options
def list_(
    session: Session,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    running_longer_than: int | None,
    pattern: str | None,
) -> None:
    """List transactional ids."""
    wanted_states = parse_words(states, _STATES, "--state")
    with session.admin() as admin:
        found = admin.list_transactions(
            states=wanted_states,
            producer_ids=producer_ids,
            running_longer_than_ms=-1 if running_longer_than is None else running_longer_than,
            pattern=pattern,
        )
    session.output.show_found(listed_transactions(found))


def listed_transactions(found: Iterable[TransactionListing]) -> Found:
    """Return transactional ids as a list."""
    rows = [(each.coordinator, each.transactional_id, each.producer_id, each.state) for each in found]
    columns = ("BROKER", "TRANSACTIONAL-ID", "PRODUCER-ID", "STATE")
    return found_rows(columns, rows, hidden_first=("BROKER", "PRODUCER-ID"))


@txn.command()
@click.argument(
    "transactional_ids", nargs=-1, required=True, metavar="TRANSACTIONAL-ID…", shell_complete=complete_transactional_ids
)
@session_options
def describe(session: Session, transactional_ids: tuple[str, ...]) -> None:
    """Describe transactional ids: state, producer, timeout, and what an open transaction includes."""
    now_ms = round(time.time() * 1000)
    with session.admin() as admin:
        outcomes = admin.describe_transactions(dict.fromkeys(transactional_ids))
    tables = [_description(found, now_ms) for found in outcomes.values() if isinstance(found, TransactionDescription)]
    if tables:
        session.output.show([table.objects()[0] for table in tables], *tables)
    report_failures((f"transactional id {name}", outcome) for name, outcome in outcomes.items())


def _description(found: TransactionDescription, now_ms: int) -> Table:
    is_open = found.start_ms is not None and not found.state.startswith(("Complete", "Empty"))
    columns = (
        "TRANSACTIONAL-ID", "COORDINATOR", "STATE", "PRODUCER-ID", "PRODUCER-EPOCH", "TIMEOUT", "SINCE", "OPEN-FOR", "PARTITIONS",
    )  # fmt: skip
    row = (
        found.transactional_id,
        found.coordinator,
        found.state,
        found.producer_id,
        found.producer_epoch,
        "none" if found.timeout_ms == NEVER_TIMES_OUT_MS else duration_text(found.timeout_ms),
        format_time_ms(found.start_ms) if is_open and found.start_ms is not None else None,
        duration_text(now_ms - found.start_ms) if is_open and found.start_ms is not None else None,
        [str(each) for each in found.partitions],
    )
    return Table(columns, [row], vertical=True)


@txn.command()
@click.argument("transactional_ids", nargs=-1, metavar="[TRANSACTIONAL-ID…]", shell_complete=complete_transactional_ids)
@click.option(
    "--topic", "hanging", metavar="TOPIC:PARTITION", help="Abort a hanging transaction in this partition instead."
)
@click.option("--start-offset", type=click.IntRange(min=0), help="Where the hanging transaction begins.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be aborted.")
@session_options
def abort(
    session: Session, transactional_ids: tuple[str, ...], hanging: str | None, start_offset: int | None, dry_run: bool
) -> None:
    """Abort the open transactions of transactional ids, and fence their producers.

    With --topic and --start-offset, write an abort marker for a hanging transaction, which no coordinator knows, into that
    partition; `barnabas txn doctor` finds hanging transactions.
    """
    if (hanging is None) != (start_offset is None) or (hanging is None) == (not transactional_ids):
        raise click.UsageError("Missing argument 'TRANSACTIONAL-ID…' (or --topic TOPIC:PARTITION with --start-offset).")
    with session.admin() as admin:
        if hanging is not None and start_offset is not None:
            try:
                partition = partition_of(hanging)
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="--topic") from None
            done = aborted_hanging(admin, partition, start_offset, dry_run=dry_run)
        else:
            done = aborted(admin, transactional_ids, dry_run=dry_run)
    done.show(session.output)


def aborted(admin: Admin, transactional_ids: Iterable[str], *, dry_run: bool) -> Done:
    """Abort the open transactions of transactional ids and fence their producers, or only show them."""
    described = admin.describe_transactions(dict.fromkeys(transactional_ids))
    rows: list[tuple[object, ...]] = []
    outcomes: dict[str, KafkaError | None] = {}
    # InitProducerId would create an id that does not exist.
    known = {name: found for name, found in described.items() if isinstance(found, TransactionDescription)}
    fenced: dict[str, tuple[int, int] | KafkaError] = {} if dry_run else dict(admin.fence_producers(known))
    for name, found in described.items():
        if not isinstance(found, TransactionDescription):
            outcomes[name] = found
            continue
        outcome = fenced.get(name)
        outcomes[name] = outcome if isinstance(outcome, KafkaError) else None
        if outcomes[name] is None:
            did = "aborted" if found.state == "Ongoing" else "fenced"
            rows.append((name, f"would be {did}" if dry_run else did, found.state, found.producer_id))
    columns = ("TRANSACTIONAL-ID", "STATUS", "STATE-BEFORE", "PRODUCER-ID")
    return Done(
        found_rows(columns, rows, hidden_first=("PRODUCER-ID", "STATE-BEFORE")),
        failed([(f"transactional id {name}", outcome) for name, outcome in outcomes.items()]),
    )


def partition_of(text: str) -> TopicPartition:
    """Parse TOPIC:PARTITION.

    Raises:
        ValueError: it is not that.
    """
    named = _PARTITION.fullmatch(text)
    if named is None:
        raise ValueError(f"{text!r} is not TOPIC:PARTITION")
    return TopicPartition(named["topic"], int(named["partition"]))


def aborted_hanging(admin: Admin, partition: TopicPartition, start_offset: int, *, dry_run: bool) -> Done:
    """Write an abort marker for a transaction that no coordinator knows, or only show it.

    Raises:
        Failure: no transaction begins there.
        KafkaError: the partition does not exist, or its leader rejects the marker.
    """
    producers = result(admin.describe_producers([partition])[partition])
    found = [each for each in producers if each.transaction_start_offset == start_offset]
    if not found:
        begins = sorted(each.transaction_start_offset for each in producers if each.transaction_start_offset >= 0)
        hint = (
            f"open transactions begin at {', '.join(map(str, begins))}"
            if begins
            else "the partition has no open transaction"
        )
        raise Failure(f"no transaction begins at offset {start_offset} of {partition}", hint)
    error = None if dry_run else admin.abort_transaction(partition, found[0])
    if error is not None:
        raise error
    row = (*partition, start_offset, found[0].producer_id, "would be aborted" if dry_run else "aborted")
    columns = ("TOPIC", "PARTITION", "START-OFFSET", "PRODUCER-ID", "STATUS")
    return Done(found_rows(columns, [row], hidden_first=("PRODUCER-ID", "START-OFFSET")))


@txn.command()
@click.argument("topics", nargs=-1, metavar="[TOPIC]…", shell_complete=complete_topics)
@click.option("--longer-than", type=Duration(), default="0s", help="Only transactions open for longer: 5m.")
@session_options
def doctor(session: Session, topics: tuple[str, ...], longer_than: int) -> None:
    """Show the transactions that hold back the last stable offset: producer, id, since when, and what to do.

    Readers with isolation.level=read_committed wait at that offset. Without TOPICS: all topics, internal ones too.
    """
    now_ms = round(time.time() * 1000)
    with session.admin() as admin:
        found = held_back(admin, now_ms, topics, longer_than_ms=longer_than)
    if not found.data and not session.output.is_json:
        click.echo("no transaction holds readers back")
        return
    session.output.show_found(found)


def held_back(admin: Admin, now_ms: int, topics: tuple[str, ...] = (), *, longer_than_ms: int = 0) -> Found:
    """Return the transactions that hold back the last stable offset of topics, or of all.

    Raises:
        KafkaError: a topic does not exist, or no broker answers.
    """
    rows = [row for row, open_ms in _held_back(admin, topics, now_ms) if open_ms >= longer_than_ms]
    return found_rows(_DOCTOR_COLUMNS, rows, hidden_first=_DOCTOR_HIDDEN_FIRST, below=("ADVICE",))


def _held_back(admin: Admin, topics: tuple[str, ...], now_ms: int) -> list[tuple[tuple[object, ...], int]]:
    """Return a row for each partition whose last stable offset is behind its end, and for how many milliseconds it has been held back."""
    known = {topic.name: topic for topic in admin.list_topics(internal=True)}
    for name in topics:
        if name not in known:
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    partitions = [
        TopicPartition(topic.name, partition.partition)
        for topic in known.values()
        if not topics or topic.name in topics
        for partition in topic.partitions
    ]
    return _held_rows(admin, behind_in(admin, partitions)[1], now_ms)


def behind_in(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, tuple[int, int]]]:
    """Return the ends of the partitions whose leader answers, and last stable offset and end of those where they differ."""
    wanted = dict.fromkeys(partitions, LATEST)
    # The ends first: a last stable offset before an older end is held back for certain.
    ends = {at: each.offset for at, each in admin.list_offsets(wanted).items() if isinstance(each, OffsetAndTimestamp)}
    stable = admin.list_offsets(dict.fromkeys(ends, LATEST), isolation_level=READ_COMMITTED)
    return ends, {
        at: (stop.offset, ends[at])
        for at, stop in stable.items()
        if isinstance(stop, OffsetAndTimestamp) and stop.offset < ends[at]
    }


def held_back_at(admin: Admin, now_ms: int, behind: Mapping[TopicPartition, tuple[int, int]]) -> Found:
    """Return the transactions that hold back partitions, of which the caller has the last stable offset and the end."""
    rows = [row for row, _ in _held_rows(admin, behind, now_ms)]
    return found_rows(_DOCTOR_COLUMNS, rows, hidden_first=_DOCTOR_HIDDEN_FIRST, below=("ADVICE",))


def _held_rows(
    admin: Admin, held: Mapping[TopicPartition, tuple[int, int]], now_ms: int
) -> list[tuple[tuple[object, ...], int]]:
    if not held:
        return []
    producers = admin.describe_producers(held)
    oldest: dict[TopicPartition, ProducerState] = {}
    for each, found in producers.items():
        if isinstance(found, list):
            in_transaction = [producer for producer in found if producer.transaction_start_offset >= 0]
            if in_transaction:
                oldest[each] = min(in_transaction, key=lambda producer: producer.transaction_start_offset)
    owners = _owners(admin, {producer.producer_id for producer in oldest.values()})
    signs = _signs_of_life(admin, owners.values(), now_ms)
    return [_row(each, held[each], producer, owners, signs, now_ms) for each, producer in sorted(oldest.items())]


def _owners(admin: Admin, producer_ids: Iterable[int]) -> dict[int, TransactionDescription]:
    """Return the transaction of each producer that a coordinator knows."""
    listed = admin.list_transactions(producer_ids=sorted(producer_ids))
    described = admin.describe_transactions(each.transactional_id for each in listed)
    found = [each for each in described.values() if isinstance(each, TransactionDescription)]
    return {each.producer_id: each for each in found}


def _signs_of_life(admin: Admin, owners: Iterable[TransactionDescription], now_ms: int) -> dict[str, int]:
    """Return when each Spark sink among the owners was last seen at work."""
    if not any(sink_of(each.transactional_id) for each in owners):
        return {}
    return {each.name: each.seen_ms for each in open_sinks(admin.cluster, now_ms)}


def _row(
    partition: TopicPartition,
    offsets: tuple[int, int],
    producer: ProducerState,
    owners: dict[int, TransactionDescription],
    signs: dict[str, int],
    now_ms: int,
) -> tuple[tuple[object, ...], int]:
    owner = owners.get(producer.producer_id)
    is_known = owner is not None and partition in owner.partitions
    since_ms = owner.start_ms if is_known and owner is not None and owner.start_ms else producer.last_timestamp
    open_ms = max(0, now_ms - since_ms)
    stable, end = offsets
    row = (
        partition.topic,
        partition.partition,
        stable,
        end,
        end - stable,
        f"{producer.producer_id}/{producer.producer_epoch}",
        None if owner is None else owner.transactional_id,
        owner.state if is_known and owner is not None else "hanging",
        format_time_ms(since_ms),
        duration_text(open_ms),
        _advice(partition, producer, owner if is_known else None, signs, now_ms, open_ms),
    )
    return row, open_ms


def _advice(
    partition: TopicPartition,
    producer: ProducerState,
    owner: TransactionDescription | None,
    signs: dict[str, int],
    now_ms: int,
    open_ms: int,
) -> str:
    if owner is None:
        where = f"{partition.topic}:{partition.partition}"
        return f"barnabas txn abort --topic {where} --start-offset {producer.transaction_start_offset}"
    if owner.state != "Ongoing":
        return "its outcome is decided and its markers are on their way"
    sink = sink_of(owner.transactional_id)
    if sink is not None:
        # To abort it would lose its rows if the sink has decided it.
        seen = f", last sign of life {duration_text(now_ms - signs[sink])} ago" if sink in signs else ""
        return f"a Spark query's{seen}; if it is dead: barnabas spark orphans --abort {as_typed(sink)}"
    if owner.timeout_ms == NEVER_TIMES_OUT_MS:
        return "two-phase commit: it waits for its transaction manager"
    left_ms = owner.timeout_ms - open_ms
    if left_ms > 0:
        return f"aborts by itself in {duration_text(left_ms)}; barnabas txn abort {as_typed(owner.transactional_id)}"
    return "its timeout is over, it is about to be aborted"


def duration_text(milliseconds: int) -> str:
    """Return a duration in its two largest units: 2h05m, 3m12s, 450ms."""
    if milliseconds < 1000:
        return f"{max(milliseconds, 0)}ms"
    for position, (size, unit) in enumerate(_UNITS):
        if milliseconds >= size:
            whole = f"{milliseconds // size}{unit}"
            if position + 1 == len(_UNITS):
                return whole
            smaller, smaller_unit = _UNITS[position + 1]
            return f"{whole}{milliseconds % size // smaller:02}{smaller_unit}"
    raise AssertionError(milliseconds)
