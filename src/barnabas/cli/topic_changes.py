"""The changes that make a topic as a file wants it, and the wishes of a file that a topic cannot fulfil.

A setting that the topic has of its own and the file does not name goes back to the brokers' value: the file is the whole of it. The
exceptions are the settings in which commands keep their own state (`wanted_topics.KEPT`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.few_replicas import InSync
from barnabas.cli.wanted_topics import KEPT, WantedTopic
from barnabas.cli.wording import as_typed, counted, listed
from barnabas.client.admin import ConfigEntry, ConfigSource, TopicMetadata
from barnabas.client.reassignments import Reassignment
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.ordered_growth import SETTING as ORDERED_GROWTH

_NUMBERS = {"int": int, "short": int, "long": int, "double": float}


class Action(StrEnum):
    """A kind of change."""

    CREATE = "create"
    GROW = "grow"
    SET = "set"
    DEFAULT = "default"


class Change(NamedTuple):
    """One change of one topic.

    Attributes:
        setting: the setting, `partitions` or `replication-factor`.
        before: what is there now; None of a topic that does not exist, and of an unknown value.
        after: what will be there; None if only the broker knows.
    """

    topic: str
    action: Action
    setting: str
    before: str | None
    after: str | None


class Found(NamedTuple):
    """A topic as the cluster has it.

    Attributes:
        entries: its settings, with their synonyms.
        moving: the partitions whose replicas move.
    """

    metadata: TopicMetadata
    entries: Sequence[ConfigEntry]
    moving: Mapping[int, Reassignment] = {}

    @property
    def replicas(self) -> list[list[int]]:
        """The replicas of each partition, those that a move is about to give it."""
        return [
            [each for each in partition.replicas if each not in self._removing(partition.partition)]
            for partition in self.metadata.partitions
        ]

    def _removing(self, partition: int) -> list[int]:
        moved = self.moving.get(partition)
        return [] if moved is None else moved.removing


def created(wanted: WantedTopic, partitions: int, replication_factor: int) -> list[Change]:
    """Return the changes of a topic that does not exist.

    Args:
        partitions: how many the brokers would give it; -1 if they do not say.
        replication_factor: as `partitions`.
    """
    counts = {"partitions": partitions, "replication-factor": replication_factor}
    changes = [
        Change(wanted.name, Action.CREATE, name, None, str(count) if count > 0 else None)
        for name, count in counts.items()
    ]
    return changes + [Change(wanted.name, Action.CREATE, name, None, value) for name, value in wanted.configs.items()]


def changes_of(wanted: WantedTopic, found: Found) -> list[Change]:
    """Return the changes of a topic that exists."""
    name, present = wanted.name, len(found.metadata.partitions)
    changes = []
    total = partitions_of(wanted)
    if total is not None and total > present:
        changes.append(Change(name, Action.GROW, "partitions", str(present), str(total)))
    entries = {each.name: each for each in found.entries}
    for setting, value in wanted.configs.items():
        entry = entries.get(setting)
        if entry is None:
            changes.append(Change(name, Action.SET, setting, None, value))
        elif not _is_own(entry) or not _same(entry, value):
            changes.append(Change(name, Action.SET, setting, entry.value, value))
    for entry in found.entries:
        if _is_own(entry) and entry.name not in wanted.configs and entry.name not in KEPT:
            changes.append(Change(name, Action.DEFAULT, entry.name, entry.value, _below(entry)))
    return changes


def in_sync_of(wanted: WantedTopic, found: Found) -> InSync:
    """Return the replicas that a topic has, and the `min.insync.replicas` that it will have."""
    entry = next((each for each in found.entries if each.name == MIN_ISR), None)
    brokers = None if entry is None else _below(entry) if _is_own(entry) else entry.value
    return InSync(wanted.name, min(map(len, found.replicas), default=0), wanted.configs.get(MIN_ISR, brokers))


def obstacles(wanted: WantedTopic, found: Found) -> Iterator[Failure]:
    """Yield the wishes of a file that the topic cannot fulfil, each with the command that helps."""
    name, present = wanted.name, len(found.metadata.partitions)
    total = partitions_of(wanted)
    if total is not None and total < present:
        yield Failure(
            f"topic {name} has {counted(present, 'partition')}, and the file wants {total}: partitions cannot be taken away",
            f"write {present}, or create a topic of another name and send it the records: `barnabas replay {as_typed(name)}"
            " --from start --to TOPIC`",
        )
    if total is not None and total > present and _grows_in_order(found):
        yield Failure(
            f"topic {name} has grown in the order of its keys: more partitions without an order would end that",
            f"`barnabas topic grow {as_typed(name)} -p {total} --ordered` grows it first",
        )
    yield from _other_replicas(wanted, found.replicas)


def _other_replicas(wanted: WantedTopic, replicas: list[list[int]]) -> Iterator[Failure]:
    name = wanted.name
    if wanted.replicas is not None:
        # The order says which broker leads, so it counts.
        for partition, (now, then) in enumerate(zip(replicas, wanted.replicas, strict=False)):
            if now != list(then):
                yield Failure(
                    f"partition {name}-{partition} is on {_brokers(now)}, and the file wants {_brokers(then)}",
                    f"`barnabas cluster move {as_typed(f'{name}:{partition}')} --to {','.join(map(str, then))}` moves it",
                )
    elif wanted.replication_factor is not None:
        wrong = [partition for partition, now in enumerate(replicas) if len(now) != wanted.replication_factor]
        if wrong:
            has = sorted({len(replicas[each]) for each in wrong})
            which = (
                "" if len(wrong) == len(replicas) else f" of partition{'' if len(wrong) == 1 else 's'} {listed(wrong)}"
            )
            yield Failure(
                f"topic {name} has {' or '.join(map(str, has))} replica{'' if has == [1] else 's'}{which}, and the file wants"
                f" {wanted.replication_factor}",
                f"`barnabas cluster move {as_typed(f'{name}:{wrong[0]}')} --to BROKER,…` does it, for each partition",
            )


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'' if len(ids) == 1 else 's'} {','.join(map(str, ids))}"


def partitions_of(wanted: WantedTopic) -> int | None:
    """Return how many partitions the file wants, or None if it does not say."""
    return wanted.partitions if wanted.replicas is None else len(wanted.replicas)


def _grows_in_order(found: Found) -> bool:
    return any(each.name == ORDERED_GROWTH and each.value for each in found.entries)


def _below(entry: ConfigEntry) -> str | None:
    """Return the value that a setting of a topic has without the topic."""
    return next((each.value for each in entry.synonyms if each.source is not entry.source), None)


def _is_own(entry: ConfigEntry) -> bool:
    return entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG


def _same(entry: ConfigEntry, wanted: str) -> bool:
    """Return whether two texts are one value: brokers write numbers and lists their own way."""
    now = entry.value or ""
    if entry.type == "list":
        return _parts(now) == _parts(wanted)
    if entry.type == "boolean":
        return now.lower() == wanted.strip().lower()
    number = _NUMBERS.get(entry.type)
    if number is not None:
        try:
            return bool(number(now) == number(wanted))
        except ValueError:
            return False
    return now == wanted


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
