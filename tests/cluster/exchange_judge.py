"""Whether records, transactions and a group's reading are as they were promised: plain lists in, counts of what is wrong out.

Nothing seen is wrong too: a check of no records says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

SENT_AGAIN = "sent again by the client in a new epoch"


@dataclass
class Verdict:
    """What was counted, and what is wrong.

    Attributes:
        counted: by name, for people.
        problems: by name, examples of each kind; empty lists are left out.
    """

    counted: dict[str, int] = field(default_factory=dict)
    problems: dict[str, list[str]] = field(default_factory=dict)

    def found(self, kind: str, examples: Iterable[object]) -> None:
        """Count what is wrong in one way, and keep it if there is any."""
        listed = [str(each) for each in examples]
        self.counted[kind] = self.counted.get(kind, 0) + len(listed)
        if listed:
            self.problems.setdefault(kind, []).extend(listed)

    def __str__(self) -> str:
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counted.items())
        wrong = "".join(f"; {kind}: {', '.join(each[:5])}" for kind, each in self.problems.items())
        return counts + wrong


class Written(NamedTuple):
    """A record in the log of a partition.

    Attributes:
        number: its value.
        producer: id and epoch of the producer in its batch.
    """

    number: int
    producer: tuple[int, int]


def judge_records(told: Mapping[int, Sequence[int]], there: Mapping[int, Sequence[Written]]) -> Verdict:
    """Judge an idempotent producer whose numbers grow in each partition, and which has nothing outstanding.

    Idempotence holds within one epoch of a producer. A client that does not know what became of its requests may raise its epoch, and
    send again what has no answer (librdkafka does so after OUT_OF_ORDER_SEQUENCE_NUMBER). A record whose copies all have epochs of
    their own is therefore counted, but no broker has doubled it.

    Args:
        told: by partition, the numbers that were acknowledged.
        there: by partition, what the log has, in its order.
    """
    verdict = Verdict({"acknowledged": sum(map(len, told.values()))})
    lost, doubled, disordered, unknown, again = [], [], [], [], 0
    for partition, wanted in told.items():
        producers: dict[int, list[tuple[int, int]]] = {}
        for number, producer in there.get(partition, ()):
            producers.setdefault(number, []).append(producer)
        where = f"partition {partition}: "
        lost += [f"{where}{each}" for each in wanted if each not in producers]
        doubled += [f"{where}{each}" for each, copies in producers.items() if len(set(copies)) < len(copies)]
        again += sum(len(copies) - 1 for copies in producers.values() if len(set(copies)) == len(copies))
        # A dictionary keeps the order in which each number came first.
        disordered += [f"{where}{then} before {now}" for then, now in pairwise(producers) if now < then]
        unknown += [f"{where}{each}" for each in producers.keys() - set(wanted)]
    verdict.counted[SENT_AGAIN] = again
    verdict.found("lost", lost)
    verdict.found("doubled", doubled)
    verdict.found("out of order", disordered)
    verdict.found("never acknowledged", unknown)
    verdict.found("empty checks", [] if all(told.values()) and told else ["a partition acknowledged no record"])
    return verdict


def judge_transactions(
    committed: Sequence[int], aborted: Sequence[int], parts: Sequence[Sequence[int]], begun: int
) -> Verdict:
    """Judge transactions each of which wrote its own number once to every part.

    Args:
        committed: those whose commit was acknowledged.
        aborted: those whose abort was acknowledged. Of all others the outcome is open, but the same in all parts.
        parts: for each partition, the numbers that a reader of committed records gets, in order.
        begun: how many were begun, with the numbers from 0 on.
    """
    verdict = Verdict({"transactions committed": len(committed), "aborted": len(aborted), "begun": begun})
    counts = [Counter(part) for part in parts]
    seen = set().union(*counts)
    verdict.found("committed but lost", [each for each in committed if each not in seen])
    verdict.found("aborted but visible", [each for each in aborted if each in seen])
    verdict.found("torn", [each for each in sorted(seen) if not all(each in part for part in counts)])
    verdict.found("twice", [each for part in counts for each, times in part.items() if times > 1])
    verdict.found("out of order", [f"{a} before {b}" for part in parts for a, b in pairwise(part) if b < a])
    verdict.found("never begun", [each for each in seen if not 0 <= each < begun])
    verdict.found("empty checks", [] if committed else ["no transaction was committed"])
    return verdict


@dataclass(frozen=True)
class Read:
    """A member of a group got the record at this offset."""

    partition: int
    offset: int


@dataclass(frozen=True)
class Committed:
    """The group's commit of this offset, the next to read, was acknowledged."""

    partition: int
    offset: int


def judge_group(events: Sequence[Read | Committed], ends: Mapping[int, int], kept: Mapping[int, int]) -> Verdict:
    """Judge what the only member of a group did in this order, on partitions without gaps in their offsets.

    It never skips a record, and after a rebalance it begins no earlier than at the last offset whose commit was acknowledged.

    Args:
        ends: by partition, the end of the log.
        kept: by partition, the committed offset that the group has at last.
    """
    following: dict[int, int] = {}
    committed: dict[int, int] = {}
    skipped, back = [], []
    for each in events:
        if isinstance(each, Committed):
            committed[each.partition] = each.offset
            continue
        if each.offset > following.get(each.partition, 0):
            skipped.append(f"{each.partition}: {following.get(each.partition, 0)} to {each.offset}")
        if each.offset < committed.get(each.partition, 0):
            back.append(f"{each.partition}: {each.offset} after the commit of {committed[each.partition]}")
        following[each.partition] = each.offset + 1
    verdict = Verdict({"read by the group": sum(isinstance(each, Read) for each in events)})
    verdict.counted["commits"] = sum(isinstance(each, Committed) for each in events)
    verdict.found("skipped", skipped)
    verdict.found("before the committed offset", back)
    verdict.found("unread", [f"{each}: {following.get(each, 0)} of {end}" for each, end in ends.items()
                             if following.get(each, 0) < end])  # fmt: skip
    verdict.found("offsets not kept", [f"{each}: {kept.get(each)} of {offset}" for each, offset in committed.items()
                                       if kept.get(each, -1) < offset])  # fmt: skip
    verdict.found("empty checks", [] if following and committed else ["the group read or committed nothing"])
    return verdict
