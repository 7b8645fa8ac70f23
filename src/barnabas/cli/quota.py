"""`barnabas quota`: list, set, delete. Quotas are of users, client ids and addresses, as `kafka-configs.sh` sets them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, parse_pairs, session_options
from barnabas.client.admin import Admin, Quota
from barnabas.client.quotas import Entity
from barnabas.words.nearest import did_you_mean

_TYPES = ("user", "client-id", "ip")
_OF_CLIENTS = ("consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage")
_OF_ADDRESSES = ("connection_creation_rate",)


@click.group()
def quota() -> None:
    """Quotas of users, client ids and addresses: list, set, delete."""


def _entity(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name an entity, and pass it to the command as `entity`."""

    @functools.wraps(command)
    def with_entity(
        user: str | None, client_id: str | None, ip: str | None, defaults: tuple[str, ...], **others: object
    ) -> None:
        command(entity=entity_of(user, client_id, ip, defaults), **others)

    decorated = click.option(
        "--default", "defaults", type=click.Choice(_TYPES), multiple=True,
        help="Every user, client id or address without a quota of its own; repeat.",
    )(with_entity)  # fmt: skip
    decorated = click.option("--ip", metavar="ADDRESS", help="The clients at this address.")(decorated)
    decorated = click.option("--client-id", metavar="ID", help="The clients of this id.")(decorated)
    return click.option("--user", metavar="NAME", help="The clients of this user.")(decorated)


def entity_of(user: str | None, client_id: str | None, ip: str | None, defaults: tuple[str, ...]) -> Entity:
    """Return the entity that the options name.

    Raises:
        UsageError: none, or one that cannot have quotas.
    """
    given = {kind: name for kind, name in zip(_TYPES, (user, client_id, ip), strict=True) if name is not None}
    for kind in defaults:
        if kind in given:
            raise click.UsageError(f"--{kind} and --default {kind} exclude each other.")
    entity: dict[str, str | None] = {**given, **dict.fromkeys(defaults)}
    if not entity:
        raise click.UsageError("Name whose quota: --user, --client-id, --ip or --default TYPE.")
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("An address has quotas of its own: --ip goes with neither a user nor a client id.")
    return tuple(sorted(entity.items()))


def _known(entity: Entity) -> tuple[str, ...]:
    return _OF_ADDRESSES if dict(entity).keys() == {"ip"} else _OF_CLIENTS


def _check_names(names: list[str], entity: Entity) -> None:
    known = _known(entity)
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known) or f"; it has {', '.join(known)}"
            raise click.UsageError(f"{label(entity)} has no quota {name}{meant}")


def label(entity: Entity) -> str:
    """Return an entity as people read it: `user alice, any client-id`."""
    return ", ".join(f"any {kind}" if name is None else f"{kind} {name}" for kind, name in entity)


@quota.command(name="list")
@session_options
def list_(session: Session) -> None:
    """List quotas."""
    with session.admin() as admin:
        session.output.show_found(listed_quotas(admin))


def listed_quotas(admin: Admin) -> Found:
    """Return every quota."""
    quotas = admin.list_quotas()
    rows = [(*_cells(each), name, _number(value)) for each in quotas for name, value in each.values.items()]
    return found_rows(("USER", "CLIENT-ID", "IP", "QUOTA", "VALUE"), rows, hidden_first=("IP",))


def _cells(found: Quota) -> list[str | None]:
    names = dict(found.entity)
    return [_cell(names, kind) for kind in _TYPES]


def _cell(names: dict[str, str | None], kind: str) -> str | None:
    if kind not in names:
        return None
    return "<default>" if names[kind] is None else names[kind]


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


@quota.command(name="set")
@click.argument("pairs", nargs=-1, required=True, metavar="QUOTA=NUMBER…")
@_entity
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def set_(session: Session, entity: Entity, pairs: tuple[str, ...], dry_run: bool) -> None:
    """Set quotas of a user, a client id, both together, or an address.

    \b
    barnabas quota set --client-id reporting consumer_byte_rate=1048576
    barnabas quota set --default user controller_mutation_rate=5
    barnabas quota set --ip 10.0.0.9 connection_creation_rate=20
    """
    wanted = wanted_quotas(entity, parse_pairs(pairs, "QUOTA=NUMBER"))
    with session.admin() as admin:
        done = altered_quotas(admin, entity, wanted, dry_run=dry_run)
    done.show(session.output)


def wanted_quotas(entity: Entity, texts: Mapping[str, str]) -> dict[str, float | None]:
    """Parse quotas to set.

    Raises:
        UsageError: the entity has no such quota, or a text is not a number above 0.
    """
    _check_names(list(texts), entity)
    return {name: _parsed(name, text) for name, text in texts.items()}


def _parsed(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise click.UsageError(f"{name}={text} is not a valid quota: write a number above 0")
    return value


@quota.command()
@click.argument("names", nargs=-1, metavar="[QUOTA]…")
@_entity
@click.option("-d", "--dry-run", is_flag=True, help="Only check whether it is possible.")
@session_options
def delete(session: Session, entity: Entity, names: tuple[str, ...], dry_run: bool) -> None:
    """Delete quotas of a user, a client id, both together, or an address; without QUOTA all that it has.

    \b
    barnabas quota delete --client-id reporting
    """
    with session.admin() as admin:
        done = altered_quotas(admin, entity, unwanted_quotas(admin, entity, names), dry_run=dry_run)
    done.show(session.output)


def unwanted_quotas(admin: Admin, entity: Entity, names: tuple[str, ...]) -> dict[str, float | None]:
    """Return the quotas to delete: those of the names, or all that the entity has.

    Raises:
        UsageError: the entity has no such quota.
        Failure: it is not set.
    """
    _check_names(list(names), entity)
    quotas = {each.entity: each.values for each in admin.list_quotas()}
    _check_there(quotas, entity, names)
    return dict.fromkeys(names or quotas[entity])


def _check_there(quotas: Mapping[Entity, Mapping[str, float]], entity: Entity, names: tuple[str, ...]) -> None:
    """Check that there is something to delete.

    Raises:
        Failure: the entity has no quotas, or not one of those that are named.
    """
    there = quotas.get(entity)
    if not there:
        meant = did_you_mean(label(entity), map(label, quotas))
        raise Failure(f"{label(entity)} has no quotas{meant}", "`barnabas quota list` shows who has some")
    for name in names:
        if name not in there:
            raise Failure(f"{label(entity)} has no {name} to delete", f"it has {', '.join(there)}")


def altered_quotas(admin: Admin, entity: Entity, values: Mapping[str, float | None], *, dry_run: bool) -> Done:
    """Set quotas, and delete those whose value is None, or check whether that is possible.

    Raises:
        Failure: the broker rejects it.
    """
    error = admin.alter_quotas(entity, values, validate_only=dry_run)
    if error is not None:
        raise failure_of(error, label(entity))
    rows = [
        (label(entity), name, None if value is None else _number(value), _status(value, dry_run))
        for name, value in values.items()
    ]
    return Done(found_rows(("OF", "QUOTA", "VALUE", "STATUS"), rows))


def _status(value: float | None, dry_run: bool) -> str:
    return f"{'would be ' if dry_run else ''}{'deleted' if value is None else 'set'}"
