"""`barnabas config`: describe and alter settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import click

from barnabas.cli.altered_settings import Altered
from barnabas.cli.altered_settings import alter as alter_settings
from barnabas.cli.changed_settings import SHORT_SOURCES, changed
from barnabas.cli.done import Done, failed
from barnabas.cli.failure import Failure, report_failures
from barnabas.cli.output import Table, found_rows
from barnabas.cli.session import Session, complete_groups, complete_topics, parse_pairs, session_options
from barnabas.cli.wording import as_typed, listed
from barnabas.client.admin import Admin, ConfigChange, ConfigEntry, ConfigResource, ResourceType
from barnabas.client.configs import ConfigOperation
from barnabas.protocol.errors import KafkaError
from barnabas.settings_table import near_setting, setting_names
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

_TYPES = {
    "topic": "TOPIC",
    "topics": "TOPIC",
    "broker": "BROKER",
    "brokers": "BROKER",
    "group": "GROUP",
    "groups": "GROUP",
    "client-metrics": "CLIENT_METRICS",
    "broker-loggers": "BROKER_LOGGER",
}


def _entity(command: Callable[..., None]) -> Callable[..., None]:
    """Add TYPE and NAME…, and Kafka's spelling of them."""
    command = click.option("--entity-default", is_flag=True, help="Of brokers: the default of all brokers.")(command)
    command = click.option("--entity-name", "more", multiple=True, hidden=True)(command)
    command = click.option("--entity-type", type=click.Choice(list(_TYPES)), hidden=True)(command)
    return click.argument("words", nargs=-1, metavar="TYPE [NAME]…", shell_complete=_complete_word)(command)


def _complete_word(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the type, then the names of what has settings."""
    words = context.params.get("words") or ()
    if not words:
        return [each for each in ("topic", "broker", "group", "client-metrics") if each.startswith(incomplete)]
    complete = {"TOPIC": complete_topics, "GROUP": complete_groups}.get(_TYPES.get(words[0], ""))
    return [] if complete is None else complete(context, parameter, incomplete)


def _complete_key(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of settings, of every type: click does not know the words in front of an option without a value."""
    scopes = {kind.lower().replace("_", "-") for kind in _TYPES.values()}
    return sorted({name for scope in scopes for name in setting_names(scope) if name.startswith(incomplete)})


def _complete_pair(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [f"{name}=" for name in _complete_key(context, parameter, incomplete)]


def _resources(
    admin: Admin, words: tuple[str, ...], entity_type: str | None, more: tuple[str, ...], entity_default: bool
) -> list[ConfigResource]:
    if entity_type is None:
        if not words or words[0] not in _TYPES:
            meant = did_you_mean(words[0], _TYPES) if words else ""
            raise click.UsageError(
                "Name a type and its names: topic, broker, group or client-metrics"
                f" (quotas of users, clients and addresses: `barnabas quota list`){meant}."
            )
        entity_type, words = words[0], words[1:]
    kind = ResourceType[_TYPES[entity_type]]
    names = [*words, *more]
    if entity_default:
        if kind is not ResourceType.BROKER or names:
            raise click.UsageError("--entity-default goes with `broker` and without a name.")
        names = [""]
    if not names:
        if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
            names = [str(node.id) for node in admin.describe_cluster().brokers]
        elif kind is ResourceType.TOPIC:
            names = [topic.name for topic in admin.list_topics()]
        else:
            raise click.UsageError(f"Missing the name of the {entity_type}.")
    if kind is ResourceType.BROKER and not all(name.isdecimal() or name == "" for name in names):
        raise click.UsageError("Brokers are named by their ids: 0, 1, ….")
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and names != [""]:
        there = [str(node.id) for node in admin.describe_cluster().brokers]
        for name in names:
            if name not in there:
                raise Failure(f"broker {name} is not part of the cluster now", f"its brokers are: {', '.join(there)}")
    return [ConfigResource(kind, name) for name in dict.fromkeys(names)]


def _label(resource: ConfigResource) -> str:
    return f"{_kind(resource)} {resource.name}" if resource.name else f"all {_kind(resource)}s"


def _kind(resource: ConfigResource) -> str:
    return resource.type.name.lower().replace("_", "-")


@click.group()
def config() -> None:
    """Settings: describe and alter, of topics, brokers, groups."""


@config.command()
@_entity
@click.option("-a", "--all", "everything", is_flag=True, help="Also all other settings.")
@click.option("-k", "--key", "keys", multiple=True, shell_complete=_complete_key, help="Only this setting; repeat.")
@click.option("--documentation", "--doc", is_flag=True, help="With a sentence about each.")
@click.option("--synonyms", is_flag=True, help="With the overridden values of each.")
@session_options
def describe(
    session: Session,
    words: tuple[str, ...],
    entity_type: str | None,
    more: tuple[str, ...],
    entity_default: bool,
    everything: bool,
    keys: tuple[str, ...],
    documentation: bool,
    synonyms: bool,
) -> None:
    """Show settings that were set; with --all also all others.

    TYPE is topic, broker, group or client-metrics.

    \b
    barnabas config describe topic orders --all
    barnabas config describe broker 1 -k log.retention.hours
    """
    with session.admin() as admin:
        resources = _resources(admin, words, entity_type, more, entity_default)
        outcomes = admin.describe_configs(resources, names=keys or None, synonyms=synonyms, documentation=documentation)
        if not (everything or keys):
            outcomes = {each: _changed(each.type, found) for each, found in outcomes.items()}
            outcomes |= _missing_groups(admin, [each for each, found in outcomes.items() if found == []])
    data: list[dict[str, object]] = []
    tables: list[Table] = []
    for resource, entries in outcomes.items():
        if not isinstance(entries, list):
            continue
        unknown = sorted(set(keys) - {entry.name for entry in entries})
        if unknown and resource.name:  # the default of all brokers has only what was set
            meant = near_setting(_kind(resource), unknown[0]) if len(unknown) == 1 else ""
            raise Failure(
                f"{_label(resource)} has no setting {', '.join(unknown)}{meant}",
                f"`barnabas config describe {_kind(resource)} --all {as_typed(resource.name)}` lists them",
            )
        table = _table(entries, documentation, synonyms)
        data.append({"type": resource.type.name.lower(), "name": resource.name, "configs": table.objects()})
        if entries:
            tables.append(table._replace(title=_label(resource) if len(outcomes) > 1 else None))
    if data or not outcomes:
        session.output.show(data, *tables)
    _note_unset([resource for resource, entries in outcomes.items() if entries == []])
    report_failures((_label(resource), outcome) for resource, outcome in outcomes.items())


def _changed(kind: ResourceType, found: list[ConfigEntry] | KafkaError) -> list[ConfigEntry] | KafkaError:
    return found if isinstance(found, KafkaError) else changed(kind, found)


def _missing_groups(admin: Admin, unset: list[ConfigResource]) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
    """Return an error for each group that does not exist: a broker describes the settings of any name."""
    groups = {each.name: each for each in unset if each.type is ResourceType.GROUP}
    described = admin.describe_groups(groups) if groups else {}
    return {groups[name]: found for name, found in described.items() if isinstance(found, KafkaError)}


def _note_unset(resources: list[ConfigResource]) -> None:
    if resources:
        names = listed([printable(_label(each)) for each in resources])
        click.echo(f"nothing is set for {names}; --all shows the defaults", err=True)


def _table(entries: list[ConfigEntry], documentation: bool, synonyms: bool) -> Table:
    columns = ["KEY", "VALUE", "SOURCE", "TYPE", "READ-ONLY", "SENSITIVE"]
    rows: list[list[object]] = [
        [entry.name, entry.value, entry.source.name, entry.type, entry.read_only, entry.sensitive] for entry in entries
    ]
    if synonyms:
        columns.append("SYNONYMS")
        for row, entry in zip(rows, entries, strict=True):
            row.append([f"{each.source.name}:{each.name}={each.value}" for each in entry.synonyms])
    if documentation:
        columns.append("DOCUMENTATION")
        for row, entry in zip(rows, entries, strict=True):
            row.append(entry.documentation)
    hidden_first = ("SENSITIVE", "READ-ONLY", "TYPE", "SOURCE")
    return Table(columns, rows, hidden_first=hidden_first, below=columns[6:], shorter={"SOURCE": SHORT_SOURCES})


@config.command()
@_entity
@click.option(
    "-s", "--set", "sets", multiple=True, metavar="KEY=VALUE", shell_complete=_complete_pair, help="Set; repeat."
)
@click.option("--add-config", "added", multiple=True, metavar="K=V,K=[V,V]", help="Kafka's spelling of --set.")
@click.option(
    "--delete",
    "deleted",
    multiple=True,
    metavar="KEY",
    shell_complete=_complete_key,
    help="Back to the default; repeat.",
)
@click.option("--delete-config", "deleted_lists", multiple=True, metavar="K,K", help="Kafka's spelling of --delete.")
@click.option("--append", "appended", multiple=True, metavar="KEY=VALUE", help="Add to a list; repeat.")
@click.option("--subtract", "subtracted", multiple=True, metavar="KEY=VALUE", help="Remove from a list; repeat.")
@click.option("--force", is_flag=True, help="Also set what Kafka's brokers do not know, for a plugin of theirs.")
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def alter(
    session: Session,
    words: tuple[str, ...],
    entity_type: str | None,
    more: tuple[str, ...],
    entity_default: bool,
    sets: tuple[str, ...],
    added: tuple[str, ...],
    deleted: tuple[str, ...],
    deleted_lists: tuple[str, ...],
    appended: tuple[str, ...],
    subtracted: tuple[str, ...],
    force: bool,
    dry_run: bool,
) -> None:
    """Change single settings; the others stay.

    TYPE is topic, broker, group or client-metrics.

    \b
    barnabas config alter topic orders --set retention.ms=86400000
    barnabas config alter topic orders --delete max.message.bytes
    """
    values = parse_pairs(sets, "--set")
    for text in added:
        values |= parse_add_config(text)
    removed = [*deleted, *(name.strip() for text in deleted_lists for name in text.split(","))]
    changes = [ConfigChange(name, value) for name, value in values.items()]
    changes += [ConfigChange(name, None, ConfigOperation.DELETE) for name in removed]
    for pairs, option, operation in (
        (appended, "--append", ConfigOperation.APPEND),
        (subtracted, "--subtract", ConfigOperation.SUBTRACT),
    ):
        changes += [ConfigChange(name, value, operation) for name, value in parse_pairs(pairs, option).items()]
    if not changes:
        raise click.UsageError("Nothing to change: use --set, --delete, --append or --subtract.")
    with session.admin() as admin:
        if len(words) < 2 and not more and not entity_default:
            raise click.UsageError(_unnamed(words))
        resources = _resources(admin, words, entity_type, more, entity_default)
        if not force and any(each.type is ResourceType.BROKER for each in resources):
            check_are_known([each.name for each in changes if each.operation is not ConfigOperation.DELETE])
        done = altered(admin, resources, changes, dry_run=dry_run)
    done.show(session.output)


def altered(
    admin: Admin, resources: Sequence[ConfigResource], changes: Sequence[ConfigChange], *, dry_run: bool
) -> Done:
    """Change settings of each resource, or check whether that is possible."""
    outcomes = alter_settings(admin, resources, changes, dry_run=dry_run)
    rows = [
        (_kind(resource), resource.name, outcome.status(dry_run=dry_run))
        for resource, outcome in outcomes.items()
        if isinstance(outcome, Altered)
    ]
    return Done(
        found_rows(("TYPE", "NAME", "STATUS"), rows, hidden_first=("TYPE",), below=("STATUS",)),
        failed([(_label(resource), outcome) for resource, outcome in outcomes.items()]),
    )


def _unnamed(words: tuple[str, ...]) -> str:
    if words and _TYPES.get(words[0]) == "BROKER":
        return (
            "Name the broker: `barnabas config alter broker 1 --set KEY=VALUE`; --entity-default instead of a name sets the"
            " default of all brokers."
        )
    return "Name what to change: `barnabas config alter topic NAME --set KEY=VALUE`."


def check_are_known(names: Iterable[str]) -> None:
    """Check that brokers know the settings: a broker accepts any name, because its plugins may have their own.

    Raises:
        Failure: they do not know one.
    """
    known = set(setting_names("broker"))
    for name in names:
        if name not in known and not name.startswith("listener.name."):
            meant = near_setting("broker", name)
            raise Failure(f"{name} is not a setting of Kafka's brokers{meant}", "--force sets it all the same")


def parse_add_config(text: str) -> dict[str, str]:
    """Parse Kafka's `k1=v1,k2=[v1,v2]`; brackets keep the commas of a list.

    Raises:
        BadParameter: a part has no "=", or a bracket no partner.
    """
    parts: list[str] = []
    depth = 0
    for character in text:
        if character == "," and not depth:
            parts.append("")
            continue
        depth += (character == "[") - (character == "]")
        parts = parts or [""]
        parts[-1] += character
    if depth:
        raise click.BadParameter(f"{text!r} has a bracket without its partner", param_hint="--add-config")
    pairs = parse_pairs(tuple(part for part in parts if part), "--add-config")
    return {
        name: value[1:-1] if value.startswith("[") and value.endswith("]") else value for name, value in pairs.items()
    }
