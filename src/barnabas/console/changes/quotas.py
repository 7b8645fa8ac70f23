"""Quotas: `barnabas quota set` and `quota delete`."""

from __future__ import annotations

from barnabas.cli.quota import altered_quotas, entity_of, label, unwanted_quotas, wanted_quotas
from barnabas.client.admin import Admin
from barnabas.client.quotas import Entity
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field
from barnabas.words.printable import printable

_TYPES = ("user", "client-id", "ip")
_WHOSE = (
    Field("user", "User"),
    Field("client-id", "Client id"),
    Field("ip", "Address"),
    *(Field(f"default-{each}", f"Every {each} without a quota of its own", kind="box") for each in _TYPES),
)
SET_FIELDS = (
    *_WHOSE,
    Field("quotas", "Quotas, a line each", kind="lines", is_required=True, hint="consumer_byte_rate=1048576"),
)
DELETION_FIELDS = (*_WHOSE, Field("quotas", "Quotas, a line each", kind="lines", hint="all that it has; or a name"))


def setting(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan quotas."""
    entity = _entity(given)
    pairs = given.pairs("quotas")
    if not pairs:
        raise BadForm("no quota is named")
    wanted = wanted_quotas(entity, pairs)
    return Planned(
        f"Set quotas of {printable(label(entity))}",
        f"quotas of {label(entity)}",
        altered_quotas(admin, entity, wanted, dry_run=True),
        lambda admin, _: altered_quotas(admin, entity, wanted, dry_run=False),
        after=("quotas", {}),
    )


def deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan that quotas end."""
    entity = _entity(given)
    unwanted = unwanted_quotas(admin, entity, tuple(each.strip() for each in given.lines("quotas")))
    return Planned(
        f"Delete quotas of {printable(label(entity))}",
        f"quotas of {label(entity)}",
        altered_quotas(admin, entity, unwanted, dry_run=True),
        lambda admin, _: altered_quotas(admin, entity, unwanted, dry_run=False),
        destroys=label(entity),
        after=("quotas", {}),
    )


def _entity(given: Given) -> Entity:
    user, client_id, ip = (given.text(each) or None for each in _TYPES)
    defaults = tuple(each for each in _TYPES if given.is_ticked(f"default-{each}"))
    if (user, client_id, ip, defaults) == (None, None, None, ()):
        raise BadForm("name whose quota it is: a user, a client id, an address, or every one of them")
    return entity_of(user, client_id, ip, defaults)
