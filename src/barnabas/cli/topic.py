"""`barnabas topic`: create, list, configs, describe, alter, grow, delete, skew, which-partition.

Flags as rpk has them (`-p -r -c`) and as Kafka's `kafka-topics` spells them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import click

from barnabas.cli.altered_settings import alter as alter_settings
from barnabas.cli.changed_settings import SHORT_SOURCES, changed
from barnabas.cli.done import Done
from barnabas.cli.duration import Duration
from barnabas.cli.failure import report_failures
from barnabas.cli.few_replicas import InSync, warning_of_few
from barnabas.cli.growth_words import growth_of, growth_words
from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.session import (
    Session,
    complete_topic_pairs,
    complete_topic_settings,
    parse_pairs,
    session_options,
)
from barnabas.cli.topic_apply import apply
from barnabas.cli.topic_arguments import required, topic_names, whole_name
from barnabas.cli.topic_audit import audit
from barnabas.cli.topic_configs import configs
from barnabas.cli.topic_delete import delete
from barnabas.cli.topic_export import export
from barnabas.cli.topic_grow import KEYS_MOVE, grow, grow_plainly
from barnabas.cli.topic_import import import_
from barnabas.cli.topic_owners import owners_of
from barnabas.cli.topic_sizes import Column, figures
from barnabas.cli.topic_skew import skew
from barnabas.cli.topic_trim import trim
from barnabas.cli.topic_which_partition import which_partition
from barnabas.cli.wording import listed
from barnabas.client.admin import (
    Admin,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    NewTopic,
    PartitionDescription,
    ResourceType,
    TopicMetadata,
    TopicPartition,
    result,
)
from barnabas.client.configs import ConfigOperation
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.printable import printable


@click.group()
def topic() -> None:
    """Topics: create, list, describe, alter, grow, trim, delete."""


@topic.command()
@topic_names
@click.option(
    "-p", "--partitions", type=click.IntRange(min=1), help="How many.  [default: the broker's num.partitions]"
)
@click.option(
    "-r",
    "--replication-factor",
    "--replicas",
    "replicas",
    type=click.IntRange(min=1),
    help="Replicas of each partition.",
)
@click.option(
    "-c",
    "--config",
    "--topic-config",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_topic_pairs,
    help="A setting; repeat.",
)
@click.option("--if-not-exists", is_flag=True, help="Accept a topic that exists.")
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def create(
    session: Session,
    names: tuple[str, ...],
    more: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics.

    \b
    barnabas topic create orders -p 6 -c retention.ms=604800000
    """
    chosen = parse_pairs(configs, "--config")
    wanted = [NewTopic(name, partitions or -1, replicas or -1, chosen) for name in required(names, more)]
    with session.admin() as admin:
        done = created_topics(admin, wanted, if_not_exists=if_not_exists, dry_run=dry_run)
    done.show(session.output)


def created_topics(admin: Admin, wanted: list[NewTopic], *, if_not_exists: bool = False, dry_run: bool) -> Done:
    """Create topics, or check whether that is possible.

    Args:
        if_not_exists: a topic that exists is no failure.
    """
    outcomes = admin.create_topics(wanted, validate_only=dry_run)
    rows: list[tuple[object, ...]] = []
    failures = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, CreatedTopic):
            counted = [count if count > 0 else None for count in (outcome.partitions, outcome.replication_factor)]
            rows.append((name, "would be created" if dry_run else "created", *counted))
        elif isinstance(outcome, KafkaError):
            if if_not_exists and outcome.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                rows.append((name, "exists", None, None))
            else:
                failures.append((f"topic {name}", outcome))
    columns = ("TOPIC", "STATUS", "PARTITIONS", "REPLICAS")
    created = [outcome for outcome in outcomes.values() if isinstance(outcome, CreatedTopic)]
    warning = warning_of_few(InSync(each.name, each.replication_factor, each.configs.get(MIN_ISR)) for each in created)
    found = found_rows(columns, rows, hidden_first=("REPLICAS", "PARTITIONS"))
    return Done(found, failures, [] if warning is None else [warning])


@topic.command(name="list")
@click.argument("patterns", nargs=-1, metavar="[REGEX]…")
@click.option("-i", "--internal", is_flag=True, help="Also internal topics.")
@click.option("--exclude-internal", is_flag=True, hidden=True)
@click.option("--sizes", is_flag=True, help="Also records, and bytes of the leaders and of all replicas.")
@click.option("--rates", "with_rates", is_flag=True, help="Also records and bytes a second.")
@click.option("--window", "window_ms", type=Duration(), default="5m", show_default=True,
              help="A rate is that of the records of this time.")  # fmt: skip
@session_options
def list_(
    session: Session,
    patterns: tuple[str, ...],
    internal: bool,
    exclude_internal: bool,
    sizes: bool,
    with_rates: bool,
    window_ms: int,
) -> None:
    """List topics, or those whose whole name matches a regular expression.

    \b
    barnabas topic list
    barnabas topic list 'orders.*' --sizes --rates
    """
    with session.admin() as admin:
        topics = admin.list_topics(internal=internal and not exclude_internal)
        if patterns:
            topics = [each for each in topics if any(whole_name(pattern).fullmatch(each.name) for pattern in patterns)]
        session.output.show_found(
            listed_topics(admin, topics, sizes=sizes, window_ms=window_ms if with_rates else None)
        )
    if patterns and not topics:
        _note_unmatched(patterns)


def listed_topics(
    admin: Admin, topics: list[TopicMetadata], *, sizes: bool = False, window_ms: int | None = None
) -> Found:
    """Return topics with their numbers of partitions and replicas, and their owners if one has an owner.

    Args:
        sizes: also records and bytes.
        window_ms: also records and bytes a second, of this time.

    Raises:
        Failure: a newer release wrote an owner.
        KafkaError: a broker does not answer.
    """
    columns: list[Column] = []
    owners = owners_of(admin, topics)
    if (sizes or window_ms is not None) and topics:
        columns += figures(admin, topics, sizes=sizes, window_ms=window_ms)
    columns.insert(0, Column("REPLICAS", {each.name: _replicas(each) for each in topics}))
    columns.insert(0, Column("PARTITIONS", {each.name: len(each.partitions) for each in topics}))
    if owners:
        columns.append(Column("OWNER", {each.name: owners.get(each.name) for each in topics}))
    names = ("NAME", *(column.name for column in columns))
    rows = [(each.name, *(column.cell(each.name) for column in columns)) for each in topics]
    hidden_first = [each for each in ("REPLICAS", "REPLICAS-SIZE", "PARTITIONS", "OWNER") if each in names]
    table = Table(names, rows, hidden_first=hidden_first if len(names) > 3 else hidden_first[:1])
    return Found(
        [{"name": each.name} | dict(column.field(each.name) for column in columns) for each in topics], [table]
    )


def _note_unmatched(patterns: tuple[str, ...]) -> None:
    """Say on standard error that no name matches: `ord` is not `orders`, nor is a shell's `ord*`."""
    plain = next((each for each in patterns if re.fullmatch(r"[\w.-]+\*?", each)), None)
    begins = "" if plain is None else f": names that begin with {plain.rstrip('*')} match '{plain.rstrip('*')}.*'"
    click.echo(f"no topic's whole name matches {printable(' '.join(patterns))}{begins}", err=True)


def _replicas(metadata: TopicMetadata) -> int:
    return max((len(each.replicas) for each in metadata.partitions), default=0)


@topic.command()
@topic_names
@click.option("-s", "--print-summary", is_flag=True, help="Only the summary, and what else is asked for.")
@click.option("-c", "--print-configs", is_flag=True, help="Only the settings, …")
@click.option("-p", "--print-partitions", is_flag=True, help="Only the partitions, …")
@click.option("-a", "--all", "--print-all", "everything", is_flag=True, help="Also all other settings.")
@session_options
def describe(
    session: Session,
    names: tuple[str, ...],
    more: tuple[str, ...],
    print_summary: bool,
    print_configs: bool,
    print_partitions: bool,
    everything: bool,
) -> None:
    """Describe topics: partitions with leaders and offsets, and the settings that were set."""
    chosen = {
        "summary": print_summary,
        "configs": print_configs,
        "partitions": print_partitions,
    }
    if not any(chosen.values()):
        chosen = dict.fromkeys(chosen, True)
    data: list[dict[str, object]] = []
    tables: list[Table] = []
    with session.admin() as admin:
        outcomes = admin.describe_topics(required(names, more))
        found = [outcome for outcome in outcomes.values() if isinstance(outcome, TopicMetadata)]
        summaries = topic_summaries(admin, found) if chosen["summary"] else {}
        described = _settings(admin, found) if chosen["configs"] else {}
        details = admin.describe_partitions(each.name for each in found) if chosen["partitions"] else {}
        partitions = (
            topic_partitions(admin, found, details, everything=session.output.is_json) if chosen["partitions"] else {}
        )
        has_leaderless = any(each.leader < 0 for each in details.values())
        serving = [each.id for each in admin.describe_cluster().brokers] if has_leaderless else []
    for each in found:
        shown: dict[str, Table] = {}
        if chosen["summary"]:
            shown["summary"] = summaries[each.name]
        if chosen["configs"]:
            entries = described[each.name] if everything else changed(ResourceType.TOPIC, described[each.name])
            rows = [(entry.name, entry.value, entry.source.name) for entry in entries]
            if rows or print_configs or session.output.is_json:
                shown["configs"] = Table(
                    ("KEY", "VALUE", "SOURCE"), rows, hidden_first=("SOURCE",), shorter={"SOURCE": SHORT_SOURCES}
                )
        if chosen["partitions"]:
            shown["partitions"] = partitions[each.name]
        tables += shown.values()
        data.append(
            {"name": each.name}
            | {key: table.objects()[0] if table.vertical else table.objects() for key, table in shown.items()}
        )
    if data:
        session.output.show(data, *tables)
    _explain_leaderless(details, serving)
    report_failures((f"topic {name}", outcome) for name, outcome in outcomes.items())


def topic_summaries(admin: Admin, topics: list[TopicMetadata]) -> dict[str, Table]:
    """Return what each topic is, in one row by its name."""
    owners = owners_of(admin, topics)
    growth = growth_of(admin, [each.name for each in topics])
    summaries = {}
    for each in topics:
        further = {"OWNER": owners[each.name]} if each.name in owners else {}
        if each.name in growth:
            further["ORDERED-GROWTH"] = growth_words(each.name, growth[each.name])
        columns = ("NAME", "TOPIC-ID", "PARTITIONS", "REPLICAS", "INTERNAL", *further)
        row = (each.name, uuid_to_str(each.topic_id), len(each.partitions), _replicas(each), each.is_internal)
        summaries[each.name] = Table(columns, [(*row, *further.values())], vertical=True)
    return summaries


def topic_partitions(
    admin: Admin,
    topics: list[TopicMetadata],
    details: dict[TopicPartition, PartitionDescription],
    *,
    everything: bool,
) -> dict[str, Table]:
    """Return the partitions of each topic; without `everything`, eligible leader replicas are shown where a partition has some."""
    offsets = log_bounds(admin, _led_partitions(topics))
    return {each.name: _partition_table(each, offsets, details, everything=everything) for each in topics}


def _settings(admin: Admin, topics: list[TopicMetadata]) -> dict[str, list[ConfigEntry]]:
    outcomes = admin.describe_configs([ConfigResource(ResourceType.TOPIC, each.name) for each in topics])
    return {resource.name: result(outcome) for resource, outcome in outcomes.items()}


def _led_partitions(topics: list[TopicMetadata]) -> list[TopicPartition]:
    return [
        TopicPartition(each.name, found.partition) for each in topics for found in each.partitions if found.leader >= 0
    ]


def _partition_table(
    metadata: TopicMetadata,
    offsets: dict[TopicPartition, Bounds],
    details: dict[TopicPartition, PartitionDescription],
    *,
    everything: bool,
) -> Table:
    """Return the partitions; without `everything`, eligible leader replicas are shown where a partition has some."""
    eligible = {at.partition: found for at, found in details.items() if at.topic == metadata.name}
    with_elr = everything or any(found.elr or found.last_known_elr for found in eligible.values())
    rows = []
    for each in metadata.partitions:
        found = eligible.get(each.partition)
        lists = (found.elr, found.last_known_elr) if found is not None else ([], [])
        bounds = offsets.get(TopicPartition(metadata.name, each.partition), (None, None))
        leader = each.leader if each.leader >= 0 else None
        row = (each.partition, leader, each.leader_epoch, each.replicas, each.isr)
        rows.append((*row, *(lists if with_elr else ()), *bounds))
    columns = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR")
    elr_columns = ("ELR", "LAST-KNOWN-ELR") if with_elr else ()
    hidden_first = ("LOG-START-OFFSET", "LAST-KNOWN-ELR", "EPOCH", "ELR", "REPLICAS", "HIGH-WATERMARK")
    shown = (*columns, *elr_columns, "LOG-START-OFFSET", "HIGH-WATERMARK")
    return Table(shown, rows, hidden_first=tuple(each for each in hidden_first if each in shown))


def _explain_leaderless(details: dict[TopicPartition, PartitionDescription], serving: Sequence[int]) -> None:
    """Say on standard error why partitions have no leader: one line a reason."""
    concerned: dict[str, list[TopicPartition]] = {}
    for at, partition in details.items():
        if (why := partition.why_leaderless_among(serving)) is not None:
            concerned.setdefault(str(why), []).append(at)
    for text, partitions in concerned.items():
        click.echo(f"no leader: {listed(partitions)}: {text}", err=True)


@topic.command()
@topic_names
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Grow to this total; keys move to others.")
@click.option("-n", "--add-partitions", "added", type=click.IntRange(min=1), help="Add this many.")
@click.option(
    "-c",
    "--config",
    "--set",
    "configs",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_topic_pairs,
    help="Set a setting; repeat.",
)
@click.option(
    "--delete-config",
    "--delete",
    "deleted",
    multiple=True,
    metavar="KEY",
    shell_complete=complete_topic_settings,
    help="Back to the default; repeat.",
)
@click.option("--owner", metavar="NAME", help="Who owns it; '' for no owner.")
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def alter(
    session: Session,
    names: tuple[str, ...],
    more: tuple[str, ...],
    partitions: int | None,
    added: int | None,
    configs: tuple[str, ...],
    deleted: tuple[str, ...],
    owner: str | None,
    dry_run: bool,
) -> None:
    """Add partitions to topics, or change their settings or owner.

    With more partitions a key may map to another one: its old and new records are then in two partitions. `topic grow --ordered`
    has consumer groups read them in order.
    """
    wanted = required(names, more)
    if partitions and added:
        raise click.UsageError("Use either --partitions (a total) or --add-partitions (a difference).")
    changes = [ConfigChange(name, value) for name, value in parse_pairs(configs, "--config").items()]
    changes += [ConfigChange(name, operation=ConfigOperation.DELETE) for name in deleted]
    if not (changes or partitions or added or owner is not None):
        raise click.UsageError(
            "Nothing to change: use --partitions, --add-partitions, --config, --delete-config or --owner."
        )
    rows: list[tuple[object, ...]] = []
    failures: list[tuple[str, KafkaError]] = []
    grew = False
    verb = "would be " if dry_run else ""
    with session.admin() as admin:
        for name, outcome in admin.describe_topics(wanted).items():
            if not isinstance(outcome, TopicMetadata):
                failures.append((f"topic {name}", outcome))
                continue
            total = partitions or (len(outcome.partitions) + added if added else None)
            if total:
                grown = grow_plainly(admin, outcome, total, dry_run=dry_run)
                if isinstance(grown, KafkaError):
                    failures.append((f"topic {name}", grown))
                    continue
                grew = True
                rows.append((name, grown))
            if changes:
                resource = ConfigResource(ResourceType.TOPIC, name)
                altered = alter_settings(admin, [resource], changes, dry_run=dry_run)[resource]
                if isinstance(altered, KafkaError):
                    failures.append((f"topic {name}", altered))
                    continue
                rows.append((name, altered.status(dry_run=dry_run)))
            if owner is not None:
                if not dry_run:
                    admin.set_owner(outcome, owner, now_ms=time.time_ns() // 1_000_000)
                rows.append((name, f"{verb}owned by {printable(owner)}" if owner else f"{verb}without an owner"))
    Done(found_rows(("TOPIC", "STATUS"), rows, below=("STATUS",)), failures, [KEYS_MOVE] if grew else []).show(
        session.output
    )


for command in (apply, audit, configs, delete, export, grow, import_, skew, trim, which_partition):
    topic.add_command(command)
