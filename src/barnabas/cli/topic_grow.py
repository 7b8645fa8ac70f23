"""`barnabas topic grow`: more partitions; with `--ordered` so that consumer groups read each key in order.

Ordered growth takes four steps. Each is a change of the topic's setting or of the topic, so the same command goes on where a killed
one stopped:

    no setting          write `4>12`: brokers will hold back partitions that do not exist yet
    4>12                create the partitions, then write `since=`: now they exist
    4>12 since=T        wait until T + settle: then no producer places a record by the old number any more
                        write `fences=`: the ends of the old partitions
    … fences=…          sealed
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import click

from barnabas.cli.done import Done
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import Admin, TopicMetadata, result
from barnabas.client.topic_growth import fences_of, log_starts
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.ordered_growth import SETTING, Generation, is_spent
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

KEYS_MOVE = "keys map to other partitions when there are more: a key's old and new records may be in two"
"""The warning of every growth that is not ordered."""


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=complete_topics)
@click.option("-p", "--partitions", type=click.IntRange(min=1), required=True, help="Grow to this total.")
@click.option("--ordered", is_flag=True, help="Consumer groups read a key's old records before its new ones.")
@click.option(
    "--settle",
    type=Duration(),
    default="12m",
    show_default=True,
    help="With --ordered: how long a producer may place records by the old number.",
)
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def grow(session: Session, name: str, partitions: int, ordered: bool, settle: int, dry_run: bool) -> None:
    """Give a topic more partitions.

    With --ordered the number must be a multiple of the present one. A group gets a new partition when it has finished the old one
    from which the keys come. Killed at any point, the same command goes on.

    \b
    barnabas topic grow orders -p 12 --ordered
    """
    with session.admin() as admin:
        topic = result(admin.describe_topics([name])[name])
        if ordered:
            status = OrderedGrowth(admin, topic, partitions).run(settle, dry_run=dry_run)
            done = Done(_grown(name, status))
        else:
            done = grown_plainly(admin, topic, partitions, dry_run=dry_run)
    done.show(session.output)


def grown_plainly(admin: Admin, topic: TopicMetadata, total: int, *, dry_run: bool) -> Done:
    """Give a topic more partitions, without an order of keys.

    Raises:
        Failure: the broker rejects the number.
    """
    grown = grow_plainly(admin, topic, total, dry_run=dry_run)
    if isinstance(grown, KafkaError):
        raise failure_of(grown, f"topic {topic.name}")
    return Done(_grown(topic.name, grown), notes=[KEYS_MOVE])


def _grown(name: str, status: str) -> Found:
    return found_rows(("TOPIC", "STATUS"), [(name, status)], below=("STATUS",))


def grow_plainly(admin: Admin, topic: TopicMetadata, total: int, *, dry_run: bool) -> str | KafkaError:
    """Create partitions, and return what was done."""
    grown = admin.create_partitions({topic.name: total}, validate_only=dry_run)[topic.name]
    if isinstance(grown, KafkaError):
        return grown
    return f"{'would be ' if dry_run else ''}grown from {len(topic.partitions)} to {grown} partitions"


class Waiting(NamedTuple):
    """The clock and the pause of a command that waits: seams for tests."""

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    sleep: Callable[[float], None] = time.sleep


class OrderedGrowth:
    """One topic's growth to a total number of partitions."""

    def __init__(self, admin: Admin, topic: TopicMetadata, total: int, waiting: Waiting | None = None) -> None:
        self._admin = admin
        self._topic = topic
        self._total = total
        self._waiting = waiting or Waiting()

    def __repr__(self) -> str:
        return f"<OrderedGrowth {self._topic.name} to {self._total}>"

    def run(self, settle_ms: int, *, dry_run: bool) -> str:
        """Begin the growth, or go on with it, and return what was done.

        Raises:
            Failure: the total is no multiple, another growth is not sealed, or the brokers are Apache Kafka's.
            KafkaError: a broker rejects a step; the same command goes on.
        """
        name, total = self._topic.name, self._total
        older, growth = self._read()
        if growth is not None and growth.is_sealed:
            return self._forget_spent([*older, growth], dry_run=dry_run)
        if growth is None:
            self._check_multiple()
            growth = Generation(len(self._topic.partitions), total)
        if dry_run:
            self._store([*older, growth], dry_run=True)
            checked = self._create(growth, dry_run=True)
            return checked or f"would be sealed: it has {total} partitions"
        if growth.since_ms is None:
            older = self._unspent(older)
            # Before the partitions exist: no reader may see one that the brokers do not hold back.
            self._store([*older, growth])
            self._create(growth, dry_run=False)
            growth = growth._replace(since_ms=self._waiting.now_ms())
            self._store([*older, growth])
        self._settle(growth, settle_ms)
        fences = fences_of(self._admin.cluster, name, growth.before)
        self._store([*older, growth._replace(fences=fences)])
        return f"grown from {growth.before} to {growth.after} partitions, in order, and sealed"

    def _read(self) -> tuple[list[Generation], Generation | None]:
        """Return the older generations, and this growth if it has begun.

        Raises:
            Failure: another growth is not sealed, or a newer release wrote the setting.
        """
        name = self._topic.name
        try:
            generations = list(self._admin.list_growth([name]).get(name, ()))
        except ValueError as error:
            raise Failure(f"{SETTING} of topic {name} cannot be read: {error}") from None
        last = generations[-1] if generations else None
        if last is None or (last.is_sealed and last.after != self._total):
            return generations, None
        if last.after != self._total:
            raise Failure(
                f"topic {name} is still growing in order, from {last.before} to {last.after} partitions",
                f"`barnabas topic grow {name} -p {last.after} --ordered` finishes that first",
            )
        return generations[:-1], last

    def _check_multiple(self) -> None:
        present, total = len(self._topic.partitions), self._total
        if total == present:
            raise Failure(f"topic {self._topic.name} has {present} partitions already", f"use -p {2 * present} or more")
        if total < present or total % present:
            first, second, third = (present * factor for factor in (2, 3, 4))
            raise Failure(
                f"topic {self._topic.name} has {present} partition{'' if present == 1 else 's'}, and ordered growth needs a "
                f"multiple of that, not {total}",
                f"use -p {first}, {second} or {third}; without --ordered any larger number is possible",
            )

    def _create(self, growth: Generation, *, dry_run: bool) -> str | None:
        """Create the partitions if they do not exist."""
        if len(self._topic.partitions) >= growth.after:
            return None
        grown = grow_plainly(self._admin, self._topic, growth.after, dry_run=dry_run)
        if isinstance(grown, KafkaError):
            now = self._admin.describe_topics([self._topic.name])[self._topic.name]
            if isinstance(now, TopicMetadata) and len(now.partitions) == growth.after:
                return None  # An earlier attempt has created them, or another command.
            raise failure_of(grown, f"topic {self._topic.name}")
        return grown

    def _store(self, generations: list[Generation], *, dry_run: bool = False) -> None:
        name = self._topic.name
        try:
            on_every_broker = self._admin.store_growth(name, generations, validate_only=dry_run)
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            raise Failure(
                "this cluster's brokers cannot hold readers back",
                f"`barnabas topic grow {name} -p {self._total}` grows it without an order of keys",
            ) from None
        if not on_every_broker:
            raise Failure(
                f"not every broker shows the growth of topic {name} yet", "try again: the same command goes on"
            )

    def _settle(self, growth: Generation, settle_ms: int) -> None:
        """Wait until no producer uses the old number."""
        assert growth.since_ms is not None, growth
        since_ms, now_ms = growth.since_ms, self._waiting.now_ms
        end_ms = since_ms + settle_ms
        if now_ms() >= end_ms:
            return
        click.echo(
            f"{printable(self._topic.name)} has {growth.after} partitions; until {format_time_ms(end_ms)} a producer may still "
            f"use {growth.before}. The same command goes on if this one is stopped.",
            err=True,
        )

        def measure() -> Measured:
            passed = min(max(now_ms() - since_ms, 0), settle_ms)
            return Measured(f"producers learn of {growth.after} partitions", passed, settle_ms)

        with shown(measure):
            while (left_ms := end_ms - now_ms()) > 0:
                self._waiting.sleep(left_ms / 1000)

    def _unspent(self, generations: list[Generation]) -> list[Generation]:
        """Return the generations that may still hold a reader."""
        return [
            each
            for each in generations
            if not is_spent(each, log_starts(self._admin.cluster, self._topic.name, each.before))
        ]

    def _forget_spent(self, generations: list[Generation], *, dry_run: bool) -> str:
        """Drop generations that hold no group back any more."""
        kept = self._unspent(generations)
        if len(kept) == len(generations):
            return "unchanged: grown in order, and sealed"
        if not dry_run:
            self._store(kept)
        return f"{'would be ' if dry_run else ''}free: no record below the fences is left, and no group waits"
