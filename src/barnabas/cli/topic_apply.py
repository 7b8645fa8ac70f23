"""`barnabas topic apply FILE`: topics become what a file says, so that they can be kept in git.

First the plan, which the brokers check (`validate_only`); then the question; then three requests: create, grow, change settings. If
something of the plan cannot be done, nothing is done. What fails in spite of the plan, because somebody else was faster, does not stop
the rest: the same command goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.few_replicas import InSync, warning_of_few
from barnabas.cli.output import Table
from barnabas.cli.question import typed_answer
from barnabas.cli.session import Session, session_options
from barnabas.cli.topic_changes import Action, Change, Found, changes_of, created, in_sync_of, obstacles, partitions_of
from barnabas.cli.topic_grow import KEYS_MOVE
from barnabas.cli.wanted_topics import BadTopicFile, WantedTopic, read_wanted_topics
from barnabas.cli.wording import counted
from barnabas.client.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    CreatedTopic,
    NewTopic,
    ResourceType,
    TopicMetadata,
    result,
)
from barnabas.client.configs import ConfigOperation
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.printable import printable


class Plan(NamedTuple):
    """The changes that a file makes in a cluster.

    Attributes:
        wanted: the topics of the file, by name.
        absent: the names of those that do not exist.
        changes: all changes, topic by topic.
        others: how many topics the cluster has that are not in the file.
        in_sync: the replicas of each topic after the changes.
    """

    wanted: Mapping[str, WantedTopic]
    absent: Sequence[str]
    changes: Sequence[Change]
    others: int
    in_sync: Sequence[InSync] = ()

    def summary(self) -> str:
        """Return the plan in one sentence for people."""
        of = {action: [each for each in self.changes if each.action is action] for action in Action}
        parts = [
            (len(self.absent), f"{counted(len(self.absent), 'topic')} to create"),
            (len(of[Action.GROW]), f"{len(of[Action.GROW])} to grow"),
            (len(of[Action.SET]), f"{counted(len(of[Action.SET]), 'setting')} to change"),
            (len(of[Action.DEFAULT]), f"{len(of[Action.DEFAULT])} back to the default"),
        ]
        changed = ", ".join(words for count, words in parts if count) or "nothing to change"
        same = len(self.wanted) - len({each.topic for each in self.changes})
        others = f"; {self.others} other{' is' if self.others == 1 else 's are'} not in the file" if self.others else ""
        return f"{changed}; {counted(same, 'topic')} already as in the file{others}"


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show and check what would be changed.")
@click.option("--check", is_flag=True, help="As --dry-run; the exit code is 1 if something would be changed.")
@session_options
def apply(session: Session, path: Path, yes: bool, dry_run: bool, check: bool) -> None:
    """Make topics what a TOML file says: create, grow, change settings.

    Shows the changes and asks. A setting that a topic has and the file does not name goes back to its default; topics that are not in
    the file stay as they are. If one change is impossible, none is made.

    \b
    barnabas topic apply topics.toml --dry-run
    """
    if yes and (dry_run or check):
        raise click.UsageError(f"--yes and {'--dry-run' if dry_run else '--check'} contradict each other.")
    only_shows = dry_run or check
    if session.output.is_json and not (yes or only_shows):
        raise click.UsageError("JSON leaves no place for a question: add --yes, --dry-run or --check.")
    try:
        wanted = read_wanted_topics(path)
    except BadTopicFile as error:
        raise Failure(str(error)) from None
    with session.admin() as admin:
        plan = planned(admin, wanted)
        if not session.output.is_json:
            _show(session, plan, done=False)
        failures: list[Failure] = []
        if plan.changes and not only_shows:
            if not yes:
                _ask(plan)
            failures = carried_out(admin, plan, dry_run=False)
        if session.output.is_json:
            _show(session, plan, done=not only_shows and not failures)
    if failures:
        raise Failures(failures)
    if check and plan.changes:
        raise Failure(
            f"{printable(str(path))} and the cluster differ: {_size(plan)}",
            "`barnabas topic apply FILE` makes them equal",
        )
    if plan.changes and not only_shows:
        click.echo(f"done: {_size(plan)}", err=True)


def planned(admin: Admin, topics: Sequence[WantedTopic]) -> Plan:
    """Return what has to change, as the brokers have checked it.

    Raises:
        Failures: something cannot be done; nothing was changed.
        KafkaError: no broker answers.
    """
    wanted = {each.name: each for each in topics}
    outcomes = admin.describe_topics(wanted)
    there = {name: each for name, each in outcomes.items() if isinstance(each, TopicMetadata)}
    failures = [
        failure_of(each, f"topic {name}")
        for name, each in outcomes.items()
        if isinstance(each, KafkaError) and each.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    found = _found(admin, there)
    for name, state in found.items():
        failures += obstacles(wanted[name], state)
    absent = [name for name in wanted if name not in there]
    checked = admin.create_topics([_new(wanted[name]) for name in absent], validate_only=True) if absent else {}
    if failures:
        # The brokers check the new topics too, so that a file with several mistakes is corrected once.
        failures += [
            failure_of(each, f"topic {name}") for name, each in checked.items() if isinstance(each, KafkaError)
        ]
        raise Failures(failures)
    changes: list[Change] = []
    in_sync: list[InSync] = []
    for name, each in wanted.items():
        if name in found:
            changes += changes_of(each, found[name])
            in_sync.append(in_sync_of(each, found[name]))
        elif isinstance(outcome := checked[name], CreatedTopic):
            changes += created(each, outcome.partitions, outcome.replication_factor)
            in_sync.append(InSync(name, outcome.replication_factor, outcome.configs.get(MIN_ISR)))
        else:
            failures.append(failure_of(outcome, f"topic {name}"))
    others = sum(1 for each in admin.list_topics() if each.name not in wanted)
    plan = Plan(wanted, absent, changes, others, in_sync)
    failures += carried_out(admin, plan._replace(absent=()), dry_run=True)
    if failures:
        raise Failures(failures)
    return plan


def _found(admin: Admin, there: Mapping[str, TopicMetadata]) -> dict[str, Found]:
    if not there:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in there]
    entries = {each.name: result(found) for each, found in admin.describe_configs(resources, synonyms=True).items()}
    moving = admin.list_reassignments()
    return {
        name: Found(each, entries[name], {at.partition: move for at, move in moving.items() if at.topic == name})
        for name, each in there.items()
    }


def carried_out(admin: Admin, plan: Plan, *, dry_run: bool) -> list[Failure]:
    """Make the changes of a plan, or let the brokers check them, and return what failed."""
    outcomes: dict[str, object] = {}
    if plan.absent:
        outcomes |= admin.create_topics([_new(plan.wanted[name]) for name in plan.absent], validate_only=dry_run)
    before = {each.topic: int(each.before or 0) for each in plan.changes if each.action is Action.GROW}
    if before:
        totals = {name: partitions_of(plan.wanted[name]) or 0 for name in before}
        named = {name: plan.wanted[name].replicas for name in before}
        added = {name: replicas[before[name] :] for name, replicas in named.items() if replicas is not None}
        outcomes |= admin.create_partitions(totals, assignments=added, validate_only=dry_run)
    failures = [failure_of(each, f"topic {name}") for name, each in outcomes.items() if isinstance(each, KafkaError)]
    settings = _setting_changes(plan)
    altered = admin.alter_configs(settings, validate_only=dry_run) if settings else {}
    return failures + [failure_of(each, f"topic {at.name}") for at, each in altered.items() if each is not None]


def _setting_changes(plan: Plan) -> dict[ConfigResource, list[ConfigChange]]:
    found: dict[ConfigResource, list[ConfigChange]] = {}
    for each in plan.changes:
        if each.action is Action.SET:
            change = ConfigChange(each.setting, each.after)
        elif each.action is Action.DEFAULT:
            change = ConfigChange(each.setting, None, ConfigOperation.DELETE)
        else:
            continue
        found.setdefault(ConfigResource(ResourceType.TOPIC, each.topic), []).append(change)
    return found


def _new(wanted: WantedTopic) -> NewTopic:
    assignments = dict(enumerate(wanted.replicas or ()))
    return NewTopic(
        wanted.name, wanted.partitions or -1, wanted.replication_factor or -1, dict(wanted.configs), assignments
    )


def _show(session: Session, plan: Plan, *, done: bool) -> None:
    rows = [(each.topic, each.action.value, each.setting, each.before, each.after) for each in plan.changes]
    table = Table(("TOPIC", "ACTION", "SETTING", "FROM", "TO"), rows, hidden_first=("ACTION", "FROM"), below=("TO",))
    data = {
        "changes": table.objects(),
        "done": done,
        "topics": len(plan.wanted),
        "not_in_file": plan.others,
    }
    if rows or session.output.is_json:
        session.output.show(data, table)
    click.echo(plan.summary(), err=True)
    if warning := warning_of_few(plan.in_sync):
        click.echo(warning, err=True)
    if any(each.action is Action.GROW for each in plan.changes):
        click.echo(f"{KEYS_MOVE}; `barnabas topic grow TOPIC -p N --ordered` lets groups read them in order", err=True)


def _size(plan: Plan) -> str:
    topics = {each.topic for each in plan.changes}
    return f"{counted(len(plan.changes), 'change')} of {counted(len(topics), 'topic')}"


def _ask(plan: Plan) -> None:
    """Ask whether to go on.

    Raises:
        Failure: the answer is not yes.
    """
    if typed_answer(f"Type yes to make {_size(plan)}").strip().lower() not in ("y", "yes"):
        raise Failure("nothing was changed", "--yes changes without asking")
