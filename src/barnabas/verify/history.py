"""The history of a run: the clients' requests, and the cluster's answers.

A client (a *process*: one producer and one consumer) does one operation at a time. Each operation is in the history twice: when it
is invoked, and when it completes as

- `ok`: it happened. A transaction was committed, a plain send was acknowledged.
- `fail`: it certainly did not happen: no commit was requested, or the commit was rejected.
- `info`: it may have happened. The process ends, because it cannot trust its state, and another one takes its place.

    f           value
    send        [Send, …]              a plain idempotent producer
    poll        [Poll, …]
    txn         [Send | Poll | Offsets, …] in one transaction
    assign      keys                   the consumer reads these keys from here on
    subscribe   keys                   the consumer is in a group and gets some of these keys
    crash                              the process ends without closing its transaction
    stuck                              the run ended during a call of the client library that does not return
    kill, start                        a broker, by the process NEMESIS
    committed   [Offsets, …]           the groups' offsets at the end

A *key* is a partition of a topic, as a small integer, so that reports are short. The reads after the last write, from the beginning
of every key to its end, have `final` set.

In a file the history is one JSON object a line, in the order things happened; the first line describes the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

NEMESIS = -1
"""The process that kills brokers."""
VERSION = 1


class Outcome(Enum):
    """The state of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Send(NamedTuple):
    """One record; the offset is None if it is unknown."""

    key: int
    value: int
    offset: int | None = None


class Poll(NamedTuple):
    """The records of one poll: (offset, value) pairs in the order received, by key."""

    records: Mapping[int, list[tuple[int, int]]]


class Offsets(NamedTuple):
    """Offsets a group has consumed up to (the next one to read), by key."""

    group: str
    positions: Mapping[int, int]


MicroOp = Send | Poll | Offsets


@dataclass(frozen=True, slots=True)
class Op:
    """One line of the history.

    Attributes:
        index: its place in the history.
        time_ns: since the run began.
        process: the client; NEMESIS for faults.
        outcome: invoked, or how it ended.
        f: the kind of operation; see the module.
        value: micro-operations of a send, poll or txn.
        keys: of an assign or subscribe.
        rebalanced: keys that the consumer got or lost during the operation.
        error: why it failed, for people.
        final: read at the end of the run, from the beginning to the end of every key.
    """

    index: int
    time_ns: int
    process: int
    outcome: Outcome
    f: str
    value: tuple[MicroOp, ...] = ()
    keys: tuple[int, ...] = ()
    rebalanced: frozenset[int] = frozenset()
    error: str | None = None
    final: bool = False

    @property
    def sends(self) -> list[Send]:
        return [each for each in self.value if isinstance(each, Send)]

    @property
    def polls(self) -> list[Poll]:
        return [each for each in self.value if isinstance(each, Poll)]

    @property
    def offsets(self) -> list[Offsets]:
        return [each for each in self.value if isinstance(each, Offsets)]

    def reads(self) -> dict[int, list[tuple[int, int]]]:
        """Return (offset, value) pairs by key, in the order read."""
        found: dict[int, list[tuple[int, int]]] = {}
        for poll in self.polls:
            for key, pairs in poll.records.items():
                found.setdefault(key, []).extend(pairs)
        return found

    def writes(self) -> dict[int, list[int]]:
        """Return values by key, in the order sent."""
        found: dict[int, list[int]] = {}
        for send in self.sends:
            found.setdefault(send.key, []).append(send.value)
        return found

    def __str__(self) -> str:
        shown = " ".join(_shown(each) for each in self.value) or ",".join(map(str, self.keys))
        error = f" ({self.error})" if self.error else ""
        return f"#{self.index} {self.time_ns / 1e9:.3f}s p{self.process} {self.outcome.value} {self.f} {shown}{error}"


def _shown(micro: MicroOp) -> str:
    if isinstance(micro, Send):
        return f"send({micro.key}: {micro.value}{'' if micro.offset is None else f'@{micro.offset}'})"
    if isinstance(micro, Offsets):
        return f"offsets({micro.group}: {dict(micro.positions)})"
    parts = []
    for key, pairs in micro.records.items():
        listed = " ".join(f"{value}@{offset}" for offset, value in pairs[:8])
        parts.append(f"{key}: {listed}{' …' if len(pairs) > 8 else ''}")
    return f"poll({'; '.join(parts)})"


@dataclass(frozen=True)
class History:
    """A run's operations in order, and its settings.

    Attributes:
        ops: in order; an op's `index` is its place here.
        about: seed, protocol, topics and the like.
    """

    ops: tuple[Op, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)


def to_line(op: Op) -> str:
    """Return an operation as a line of JSON, without the newline."""
    line: dict[str, Any] = {"time": op.time_ns, "process": op.process, "type": op.outcome.value, "f": op.f}
    if op.value:
        line["value"] = [_to_json(each) for each in op.value]
    if op.keys:
        line["keys"] = list(op.keys)
    if op.rebalanced:
        line["rebalanced"] = sorted(op.rebalanced)
    if op.error is not None:
        line["error"] = op.error
    if op.final:
        line["final"] = True
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def _to_json(micro: MicroOp) -> list[Any]:
    if isinstance(micro, Send):
        return ["send", micro.key, micro.value, micro.offset]
    if isinstance(micro, Offsets):
        return ["offsets", micro.group, [[key, position] for key, position in micro.positions.items()]]
    return ["poll", [[key, [list(pair) for pair in pairs]] for key, pairs in micro.records.items()]]


def _from_json(micro: list[Any]) -> MicroOp:
    kind, *rest = micro
    if kind == "send":
        return Send(*rest)
    if kind == "offsets":
        return Offsets(rest[0], dict(rest[1]))
    if kind == "poll":
        return Poll({key: [(offset, value) for offset, value in pairs] for key, pairs in rest[0]})
    raise ValueError(f"unknown micro-operation {kind!r}")


def header_line(about: Mapping[str, Any]) -> str:
    """Return the first line of a file, without the newline."""
    return json.dumps({"barnabas-verify": VERSION, **about}, ensure_ascii=False)


def write_history(path: Path, history: History) -> None:
    """Write a history as lines of JSON."""
    with path.open("w", encoding="utf-8") as file:
        file.write(header_line(history.about) + "\n")
        for op in history:
            file.write(to_line(op) + "\n")


def read_history(path: Path) -> History:
    """Read the file of a run or of `write_history`; ignore an incomplete last line, which a killed run leaves.

    Raises:
        ValueError: the file is not a history; the message names the line.
    """
    try:
        with path.open(encoding="utf-8") as file:
            return parse_history(file)
    except UnicodeDecodeError:
        raise ValueError("the file is not a history, but binary") from None


def parse_history(lines: Iterable[str]) -> History:
    """Parse the lines of a history, each with its newline.

    Raises:
        ValueError: they are not a history; the message names the line.
    """
    about: dict[str, Any] | None = None
    version: object = None
    ops: list[Op] = []
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            break
        try:
            found = json.loads(line)
            if about is None:
                if (version := found.pop("barnabas-verify")) == VERSION:
                    about = found
                    continue
                break
            ops.append(_op(len(ops), found))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(f"line {number} is not a valid line of a history") from None
    if about is None:
        raise ValueError("the history is empty" if version is None else "another version of barnabas wrote the history")
    return History(tuple(ops), about)


def _op(index: int, found: dict[str, Any]) -> Op:
    return Op(
        index=index,
        time_ns=found["time"],
        process=found["process"],
        outcome=Outcome(found["type"]),
        f=found["f"],
        value=tuple(_from_json(each) for each in found.get("value", ())),
        keys=tuple(found.get("keys", ())),
        rebalanced=frozenset(found.get("rebalanced", ())),
        error=found.get("error"),
        final=found.get("final", False),
    )
