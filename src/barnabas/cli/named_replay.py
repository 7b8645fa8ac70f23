"""A replay by its name: the options that choose its records, its topics, and how far earlier runs of it have come."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import Bounds
from barnabas.cli.wording import as_typed
from barnabas.client.admin import Admin, TopicMetadata, TopicPartition, result
from barnabas.protocol.primitives import uuid_to_str
from barnabas.retries.replay import stored_progress
from barnabas.retries.replayed import Progress

COLUMNS = ("NAME", "TOPIC", "TO", "READ", "WRITTEN", "STATUS")


class Choice(NamedTuple):
    """The options that choose and change the records of a replay, as they were typed.

    Attributes:
        begin: of `--from`.
        end: of `--until`.
        filters: of `--filter`.
        rewrite: of `--rewrite`.
    """

    begin: str
    end: str | None = None
    filters: tuple[str, ...] = ()
    rewrite: str | None = None

    def text(self) -> str:
        """Return the options as one text; a replay that goes on has the same."""
        options = [
            ("--from", self.begin),
            ("--until", self.end),
            *(("--filter", each) for each in sorted(self.filters)),
            ("--rewrite", self.rewrite),
        ]
        return " ".join(f"{option} {shlex.quote(text)}" for option, text in options if text is not None)


def default_name(topic: str, to: str) -> str:
    """Return the name of a replay that was given none."""
    return f"{topic}-to-{to}"


def line_of(progress: Progress) -> str:
    """Return the command that begins a replay, or goes on with it."""
    source, target = progress.source, progress.target
    options = f"{progress.choice} --to {shlex.quote(target)}"
    if progress.name != default_name(source, target):
        options += f" --name {shlex.quote(progress.name)}"
    is_like_an_option = source.startswith("-")
    return (
        f"barnabas replay {options} {as_typed(source)}" if is_like_an_option else f"barnabas replay {source} {options}"
    )


def new_replay(admin: Admin, name: str, topic: str, to: str, choice: Choice) -> tuple[Progress, TopicMetadata]:
    """Return a replay that does not know its offsets yet, and its source.

    Raises:
        Failure: the target has too few partitions.
        KafkaError: a topic does not exist.
    """
    source, target = (result(admin.describe_topics([each])[each]) for each in (topic, to))
    if len(target.partitions) < len(source.partitions):
        raise Failure(
            f"topic {to} has fewer partitions ({len(target.partitions)}) than topic {topic} ({len(source.partitions)})",
            f"`barnabas topic alter {to} -p {len(source.partitions)}` adds them",
        )
    ids = uuid_to_str(source.topic_id), uuid_to_str(target.topic_id)
    return Progress(name, topic, ids[0], to, ids[1], choice.text(), {}), source


def continued(consumer: Consumer, admin: AdminClient, new: Progress) -> Progress | None:
    """Return the replay of this name; None if it has not begun.

    Raises:
        Failure: a replay of this name has begun with other options or topics.
    """
    try:
        stored = stored_progress(consumer, admin, new.name)
    except ValueError as error:
        raise Failure(str(error)) from None
    if stored is None:
        return None
    if (stored.source, stored.target, stored.choice) != (new.source, new.target, new.choice):
        raise Failure(
            f"replay {new.name} began as `barnabas replay {stored.source} {stored.choice} --to {stored.target}`",
            "give the same options, or another --name",
        )
    for topic, before, now in (
        (new.source, stored.source_id, new.source_id),
        (new.target, stored.target_id, new.target_id),
    ):
        if before != now:
            raise Failure(
                f"topic {topic} was deleted and created again since replay {new.name} began",
                "begin another with --name",
            )
    return stored


def partitions_of(progress: Progress) -> list[TopicPartition]:
    """Return the partitions of a replay's source."""
    return [TopicPartition(progress.source, each) for each in progress.partitions]


def losses(progress: Progress, bounds: Mapping[TopicPartition, Bounds]) -> list[str]:
    """Return a sentence for each partition whose next records are deleted."""
    found = []
    for where in partitions_of(progress):
        position, end = progress.partitions[where.partition]
        start = min(bounds[where][0] or 0, end)
        if position < start:
            found.append(f"partition {where}: offsets {position} to {start - 1} are deleted")
    return found
