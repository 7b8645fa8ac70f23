"""The anomalies: one function looks for each of them in an analysis.

    lost-write              an acknowledged record is missing although a later one of its key was read
    unseen                  an acknowledged record was never read, and nothing later either
    aborted-read (G1a)      a record of an aborted transaction, or of a rejected send, was read
    precommitted-read       a transaction read what it had sent itself
    unwritten-read          a record was read that no client sent
    duplicate               a record is at two offsets
    inconsistent-offset     two records are at one offset
    torn-transaction        some of a transaction's records are in the log and others are not
    int-poll-skip           within an operation, polls passed over records of the log
    int-nonmonotonic-poll   within an operation, polls went back in the log
    poll-skip               from one operation to the next, a consumer passed over records
    nonmonotonic-poll       from one operation to the next, a consumer went back
    int-send-skip           within a transaction, another one's record is between two sends (Kafka does not isolate writes)
    int-nonmonotonic-send   within an operation, two sends are in the log in the opposite order
    nonmonotonic-send       two operations of one producer are in the log in the opposite order
    consumed-twice          two committed transactions of a group consumed one record
    consumed-never          a group's offset is past a record that no committed transaction consumed

G0 and G1c are cycles: see `cycles`. consumed-twice, consumed-never and unwritten-read are ours, the others are Jepsen's.

A consumer in a group may lose a partition and get it back between two operations. So skips and steps back of subscribed consumers
are `allowed`: they are reported apart and do not fail the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from barnabas.verify.analysis import Analysis
from barnabas.verify.history import Op, Outcome

ALLOWED = frozenset({"int-send-skip", "G0", "G1c-ww"})
"""Kafka's transactions permit these: writes of several transactions interleave."""
EXAMPLES = 32
"""How many of a kind a report lists."""


@dataclass(frozen=True)
class Anomaly:
    """One contradiction.

    Attributes:
        name: from the table above.
        key: the partition; None for several.
        message: one sentence for people.
        ops: the operations that contradict.
        allowed: Kafka permits it.
        detail: values, offsets and the like, for programs.
    """

    name: str
    key: int | None
    message: str
    ops: tuple[Op, ...] = ()
    allowed: bool = False
    detail: dict[str, Any] = field(default_factory=dict)


def unwritten_reads(analysis: Analysis) -> Iterator[Anomaly]:
    for (key, value), readers in analysis.readers_of.items():
        if (key, value) not in analysis.writer_of:
            yield Anomaly("unwritten-read", key, f"{value} was read, which no client sent there", (readers[0],))


def aborted_reads(analysis: Analysis) -> Iterator[Anomaly]:
    for (key, value), readers in analysis.readers_of.items():
        writer = analysis.writer_of.get((key, value))
        if writer is not None and writer.outcome is Outcome.FAIL:
            message = f"{value} was read, and the {writer.f} that sent it was aborted"
            yield Anomaly("aborted-read", key, message, (writer, readers[0]))


def precommitted_reads(analysis: Analysis) -> Iterator[Anomaly]:
    for op in analysis.completions:
        if op.f != "txn":
            continue
        reads = op.reads()
        for key, sent in op.writes().items():
            for value in set(sent) & {value for _, value in reads.get(key, ())}:
                yield Anomaly("precommitted-read", key, f"a transaction read {value}, which it had sent itself", (op,))


def lost_writes(analysis: Analysis) -> Iterator[Anomaly]:
    """Find acknowledged records that were not read although a later one of their key was."""
    for key, order in analysis.order.items():
        read = [value for value in order if (key, value) in analysis.readers_of]
        bound = analysis.position[key][read[-1]] if read else -1
        for value in order[: bound + 1]:
            writer = analysis.writer_of.get((key, value))
            if (key, value) in analysis.readers_of or writer is None or not analysis.must_have_committed(writer):
                continue
            message = f"{value} was acknowledged and never read, although {order[bound]}, after it in the log, was"
            later = analysis.readers_of[key, order[bound]][0]
            yield Anomaly("lost-write", key, message, (writer, later), detail={"value": value})


def unseen(analysis: Analysis) -> Iterator[Anomaly]:
    """Find acknowledged records that were never read, after the last one read of their key or at an unknown offset."""
    lost = {(each.key, each.detail["value"]) for each in lost_writes(analysis)}
    for (key, value), writer in analysis.writer_of.items():
        if writer.outcome is Outcome.OK and (key, value) not in analysis.readers_of and (key, value) not in lost:
            message = f"{value} was acknowledged, and no poll returned it until the end"
            yield Anomaly("unseen", key, message, (writer,), detail={"value": value})


def torn_transactions(analysis: Analysis) -> Iterator[Anomaly]:
    """Find transactions of which some records are missing, in keys that were read to their end."""
    for op in analysis.completions:
        if op.f != "txn" or len(op.sends) < 2:
            continue
        known = [each for each in op.sends if each.key in analysis.final_reads]
        there = [each for each in known if each.value in analysis.final_reads[each.key]]
        if there and len(there) < len(known):
            missing = [f"{each.key}: {each.value}" for each in known if each not in there]
            message = f"of a transaction's {len(known)} records {len(there)} are in the log and these are not: {', '.join(missing)}"
            yield Anomaly("torn-transaction", None, message, (op,))


def duplicates(analysis: Analysis) -> Iterator[Anomaly]:
    for key, claims in analysis.claims.items():
        offsets: dict[int, list[int]] = {}
        for offset in sorted(claims):
            for value in claims[offset]:
                offsets.setdefault(value, []).append(offset)
        for value, found in offsets.items():
            if len(found) > 1:
                writer = analysis.writer_of.get((key, value))
                message = f"{value} is at the offsets {', '.join(map(str, found))}"
                yield Anomaly("duplicate", key, message, (writer,) if writer else (), detail={"offsets": found})


def inconsistent_offsets(analysis: Analysis) -> Iterator[Anomaly]:
    for key, claims in analysis.claims.items():
        for offset, values in sorted(claims.items()):
            if len(values) > 1:
                involved = {op.index: op for value in values for op in analysis.readers_of.get((key, value), [])[:2]}
                message = f"offset {offset} holds {' and '.join(map(str, sorted(values)))}"
                yield Anomaly("inconsistent-offset", key, message, tuple(involved.values()), detail={"offset": offset})


def internal_polls(analysis: Analysis) -> Iterator[Anomaly]:
    for op in analysis.completions:
        for key, pairs in op.reads().items():
            if key in op.rebalanced:
                continue
            for (_, first), (_, second) in pairwise(pairs):
                distance = analysis.distance(key, first, second)
                if distance is None or distance == 1:
                    continue
                name = "int-poll-skip" if distance > 1 else "int-nonmonotonic-poll"
                if op.final and distance > 1:
                    continue  # reported as lost-write
                yield Anomaly(name, key, _moved(analysis, key, first, second, "an operation"), (op,))


def internal_sends(analysis: Analysis) -> Iterator[Anomaly]:
    for op in analysis.completions:
        for key, values in op.writes().items():
            for first, second in pairwise(values):
                distance = analysis.distance(key, first, second)
                if distance is None or distance == 1:
                    continue
                name = "int-send-skip" if distance > 1 else "int-nonmonotonic-send"
                message = f"sent {first} then {second}, which are {distance} places apart in the log"
                yield Anomaly(name, key, message, (op,), allowed=name in ALLOWED)


def external_polls(analysis: Analysis) -> Iterator[Anomaly]:
    """Compare each operation of a consumer with the last successful one; a failed operation rewinds."""
    for ops in analysis.by_process():
        last: dict[int, tuple[int, Op]] = {}
        subscribed = False
        for op in ops:
            if op.f in ("assign", "subscribe"):
                if op.outcome is not Outcome.FAIL:
                    kept = op.keys if subscribed == (op.f == "subscribe") else ()
                    subscribed = op.f == "subscribe"
                    last = {key: found for key, found in last.items() if key in kept}
                continue
            for key, pairs in op.reads().items():
                if not pairs:
                    continue
                if key in last:
                    before, earlier = last[key]
                    distance = analysis.distance(key, before, pairs[0][1])
                    if distance is not None and distance != 1:
                        name = "poll-skip" if distance > 1 else "nonmonotonic-poll"
                        message = _moved(analysis, key, before, pairs[0][1], "a consumer")
                        yield Anomaly(name, key, message, (earlier, op), allowed=subscribed)
                if op.outcome is Outcome.OK:
                    last[key] = pairs[-1][1], op


def external_sends(analysis: Analysis) -> Iterator[Anomaly]:
    for ops in analysis.by_process():
        last: dict[int, tuple[int, Op]] = {}
        for op in ops:
            if op.outcome is Outcome.FAIL:
                continue
            for key, values in op.writes().items():
                there = [value for value in values if value in analysis.position.get(key, {})]
                if not there:
                    continue
                if key in last and (analysis.distance(key, last[key][0], there[0]) or 1) < 1:
                    message = f"{last[key][0]} was sent before {there[0]} and is after it in the log"
                    yield Anomaly("nonmonotonic-send", key, message, (last[key][1], op))
                last[key] = there[-1], op


def consumed(analysis: Analysis) -> Iterator[Anomaly]:
    """Find records that a group's transactions consumed twice, or not at all."""
    consumers: dict[tuple[str, int, int], list[Op]] = {}
    perhaps: set[tuple[str, int, int]] = set()
    groups: set[str] = set()
    for op in analysis.completions:
        if op.f != "txn" or op.outcome is Outcome.FAIL:
            continue
        certain = analysis.must_have_committed(op)
        reads = op.reads()
        for offsets in op.offsets:
            groups.add(offsets.group)
            for key, position in offsets.positions.items():
                for offset, value in reads.get(key, ()):
                    if offset >= position:
                        continue
                    if certain:
                        consumers.setdefault((offsets.group, key, value), []).append(op)
                    else:
                        perhaps.add((offsets.group, key, value))
    for (group, key, value), ops in consumers.items():
        if len(ops) > 1:
            message = f"group {group} consumed {value} in {len(ops)} committed transactions"
            yield Anomaly("consumed-twice", key, message, tuple(ops[:4]))
    for op in analysis.completions:
        for offsets in op.offsets if op.f == "committed" else ():
            if offsets.group not in groups:
                continue
            for key, position in offsets.positions.items():
                for offset, values in analysis.claims.get(key, {}).items():
                    for value in values if offset < position else ():
                        where = (offsets.group, key, value)
                        # A record that was read was visible; aborted ones never are.
                        if (key, value) in analysis.readers_of and where not in consumers and where not in perhaps:
                            message = f"group {offsets.group} is at {position}, and no transaction consumed {value} at {offset}"
                            yield Anomaly("consumed-never", key, message, (op,))


def _moved(analysis: Analysis, key: int, first: int, second: int, who: str) -> str:
    distance = analysis.distance(key, first, second)
    assert distance is not None
    if distance > 1:
        start = analysis.position[key][first] + 1
        passed = analysis.order[key][start : start + distance - 1]
        shown = ", ".join(map(str, passed[:8])) + (" …" if len(passed) > 8 else "")
        return f"{who} read {first} and next {second}, passing over {len(passed)}: {shown}"
    return f"{who} read {first} and next {second}, which is {-distance} places before it"


CHECKS: tuple[Callable[[Analysis], Iterator[Anomaly]], ...] = (
    lost_writes,
    unseen,
    aborted_reads,
    precommitted_reads,
    unwritten_reads,
    duplicates,
    inconsistent_offsets,
    torn_transactions,
    internal_polls,
    external_polls,
    internal_sends,
    external_sends,
    consumed,
)
