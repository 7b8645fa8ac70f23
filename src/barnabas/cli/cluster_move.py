"""`barnabas cluster move` and `cancel`: given partitions get given replicas; what moves goes back.

`kafka-reassign-partitions --execute` and `--cancel` do the same, with a file. The file is read here too.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import click

from barnabas.cli.cluster_moves import View, carry_out, moving_options, view_of
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.few_replicas import InSync, warning_of_few
from barnabas.cli.partitions import named_partitions
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.cli.wording import listed
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicPartition
from barnabas.client.placement import Plan
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable

_PARTITIONS = click.argument("partitions", nargs=-1, metavar="[TOPIC[:0,1]]…", shell_complete=complete_topics)


@click.command()
@_PARTITIONS
@click.option("--to", "brokers", metavar="BROKER,…", help="The replicas, the preferred leader first.")
@click.option(
    "--file", "path", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="Partitions and replicas, in the JSON of kafka-reassign-partitions.",
)  # fmt: skip
@moving_options
@session_options
def move(
    session: Session,
    partitions: tuple[str, ...],
    brokers: str | None,
    path: str | None,
    at_once: int,
    throttle: int | None,
    dry_run: bool,
) -> None:
    """Give partitions these replicas, and wait until they are in sync and the old ones are gone.

    More or fewer brokers than before change the number of replicas.

    \b
    barnabas cluster move orders:0,3 --to 2,3,1 --dry-run
    """
    if (path is None) == (brokers is None) or (path is None) != bool(partitions):
        raise click.UsageError("Name partitions and --to BROKER,…, or --file FILE.")
    with session.admin() as admin:
        if path is None:
            assert brokers is not None, "checked above"
            replicas = _numbers(brokers)
            wanted = dict.fromkeys(named_partitions(admin, partitions), replicas)
        else:
            wanted = _read(path)
            named_partitions(admin, {each.topic for each in wanted})
        view = view_of(admin)
        _check(view, wanted)
        plan: Plan = {at: to for at, to in wanted.items() if to != view.partitions[at].replicas}
        if (warning := warning_of_few(_fewer(admin, view, plan))) is not None:
            click.echo(warning, err=True)
        failures = carry_out(
            session, admin, view, plan, elect=False, at_once=at_once, throttle=throttle, dry_run=dry_run
        )
    if failures:
        raise Failures(failures)


@click.command()
@_PARTITIONS
@click.option("--all", "everything", is_flag=True, help="Every partition whose replicas are being moved.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be cancelled.")
@session_options
def cancel(session: Session, partitions: tuple[str, ...], everything: bool, dry_run: bool) -> None:
    """End moves of replicas: the partitions keep the replicas that they had before.

    What was copied is deleted again.

    \b
    barnabas cluster cancel --all --dry-run
    """
    if everything == bool(partitions):
        raise click.UsageError("Name partitions, or --all.")
    with session.admin() as admin:
        moving = admin.list_reassignments()
        chosen = sorted(moving) if everything else named_partitions(admin, partitions)
        if idle := [at for at in chosen if at not in moving]:
            raise Failure(f"no replica of {listed(idle)} is being moved", "`barnabas cluster status` counts what moves")
        if not chosen:
            click.echo("nothing moves", err=True)
        outcomes = {} if dry_run else admin.alter_reassignments(dict.fromkeys(chosen))
    failed = {at: error for at, error in outcomes.items() if error is not None}
    status = "would be cancelled" if dry_run else "cancelled"
    session.output.table(
        ("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING", "STATUS"),
        [(*at, moving[at].before, moving[at].adding, moving[at].removing, status) for at in chosen if at not in failed],
    )
    if failed:
        raise Failures([failure_of(error, f"partition {at}") for at, error in failed.items()])


def _fewer(admin: Admin, view: View, plan: Plan) -> list[InSync]:
    """Return the topics of which a plan takes replicas away, with the fewest that it leaves to a partition."""
    left: dict[str, int] = {}
    for at, to in plan.items():
        if len(to) < len(view.partitions[at].replicas):
            left[at.topic] = min(len(to), left.get(at.topic, len(to)))
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(left)]
    found = admin.describe_configs(resources, names=[MIN_ISR]) if resources else {}
    return [
        InSync(resource.name, left[resource.name], next((each.value for each in entries if each.name == MIN_ISR), None))
        for resource, entries in found.items()
        if not isinstance(entries, KafkaError)
    ]


def _numbers(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"'{printable(text)}' is not a list of brokers: write their ids, as 2,3,1", param_hint="--to"
        ) from None


def _read(path: str) -> dict[TopicPartition, list[int]]:
    """Return the partitions and replicas of a file of kafka-reassign-partitions.

    Raises:
        Failure: the file has another format, or names a partition twice.
    """
    wanted: dict[TopicPartition, list[int]] = {}
    try:
        with open(path, encoding="utf-8") as file:
            entries: list[Any] = json.load(file)["partitions"]
        for entry in entries:
            at = TopicPartition(str(entry["topic"]), int(entry["partition"]))
            if at in wanted:
                raise Failure(f"{printable(path)} names partition {at} twice", "leave one of them out")
            wanted[at] = [int(each) for each in entry["replicas"]]
            if any(each != "any" for each in entry.get("log_dirs", ())):
                raise Failure(
                    f"{printable(path)} names log_dirs of partition {at}, and this command does not choose directories",
                    "leave them out, and then `barnabas broker move` moves replicas between directories",
                )
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            f"{printable(path)} is not a file of kafka-reassign-partitions: {error!r}",
            'it has {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3, 1]}]}',
        ) from None
    if not wanted:
        raise Failure(f"{printable(path)} names no partition", "write at least one")
    return wanted


def _check(view: View, wanted: dict[TopicPartition, list[int]]) -> None:
    """Raise Failure if a partition does not exist, or cannot have these replicas."""
    if absent := sorted(wanted.keys() - view.partitions.keys()):
        raise Failure(f"there is no partition {listed(absent)}", "`barnabas topic list` shows which exist")
    for at, replicas in wanted.items():
        if twice := [each for each, count in Counter(replicas).items() if count > 1]:
            raise Failure(f"broker {twice[0]} cannot have two replicas of {at}", "name each broker once")
        if not replicas:
            raise Failure(f"{at} would have no replica", "name at least one broker")
    serving = ", ".join(map(str, sorted(view.serving)))
    added = {each for at, replicas in wanted.items() for each in replicas if each not in view.partitions[at].replicas}
    if down := sorted(added - set(view.serving)):
        raise Failure(
            f"{listed([f'broker {each}' for each in down])} cannot take replicas: not in service",
            f"in service are: {serving}",
        )
    if lost := sorted(at for at in wanted if view.partitions[at].leader < 0):
        raise Failure(
            f"{listed(lost)} cannot move without a leader", "`barnabas cluster status` says which broker it needs"
        )
