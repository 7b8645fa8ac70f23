"""`barnabas acl`: list, create, delete, explain. Access control lists, as `kafka-acls.sh` names them.

`explain` reads a cluster's ACLs, Apache Kafka's too, and decides here, by the class that a barnabas broker decides by.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin
from barnabas.security.acl_words import NAMED_TYPES, OPERATIONS, acl_bindings
from barnabas.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
    name_of,
)
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.hosts import java_address
from barnabas.security.principal import Principal, parse_principal

_COLUMNS = ("TYPE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
_HIDDEN_FIRST = ("HOST", "PATTERN")
Resource = tuple[ResourceType, str]
"""Its type and its name."""


@click.group()
def acl() -> None:
    """Access control lists: list, create, delete, explain."""


def _resource(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a resource, and pass it to the command as `resource`; None if no option is given."""

    @functools.wraps(command)
    def with_resource(cluster: bool, **others: object) -> None:
        found: list[Resource] = [(ResourceType.CLUSTER, CLUSTER_NAME)] if cluster else []
        for option, resource_type in NAMED_TYPES.items():
            name = others.pop(option.replace("-", "_"))
            if name is not None:
                found.append((resource_type, str(name)))
        if len(found) > 1:
            raise click.UsageError("Name one resource: --topic, --group, --cluster or another one.")
        command(resource=found[0] if found else None, **others)

    decorated = click.option("--cluster", is_flag=True, help="The cluster itself.")(with_resource)
    for word in reversed(NAMED_TYPES):
        decorated = click.option(f"--{word}", metavar="NAME", help=f"The {word.replace('-', ' ')}; '*' is every one.")(
            decorated
        )
    return decorated


def _rows(acls: Sequence[AclBinding]) -> list[tuple[str, ...]]:
    return [
        (
            name_of(ResourceType, each.resource_type),
            each.resource_name,
            name_of(PatternType, each.pattern_type),
            each.principal,
            each.host,
            name_of(AclOperation, each.operation),
            name_of(Permission, each.permission_type),
        )
        for each in acls
    ]


def _principal(text: str) -> Principal:
    try:
        return parse_principal(text)
    except ValueError:
        raise click.UsageError(f"{text} is not a principal: write Type:name, such as User:alice") from None


def _filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select ACLs, and pass an `AclFilter` to the command as `wanted`."""

    @functools.wraps(command)
    def with_filter(
        resource: Resource | None,
        principal: str | None,
        host: str | None,
        operation: str | None,
        permission: str | None,
        pattern: str,
        **others: object,
    ) -> None:
        resource_type, name = resource or (ResourceType.ANY, None)
        wanted = AclFilter(
            resource_type,
            name,
            PatternType[pattern.upper()],
            None if principal is None else str(_principal(principal)),
            host,
            AclOperation.ANY if operation is None else OPERATIONS[operation],
            Permission.ANY if permission is None else Permission[permission.upper()],
        )
        command(wanted=wanted, **others)

    decorated = click.option(
        "--resource-pattern-type", "pattern", type=click.Choice(["any", "match", "literal", "prefixed"]), default="any",
        help="Patterns of this type; match: all that apply to the name.",
    )(with_filter)  # fmt: skip
    decorated = click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only these.")(decorated)
    decorated = click.option(
        "--operation", type=click.Choice([*OPERATIONS]), metavar="NAME", help="Of this operation."
    )(decorated)
    decorated = click.option("--host", metavar="HOST", help="Of exactly this host.")(decorated)
    decorated = click.option("--principal", metavar="TYPE:NAME", help="Of this principal.")(decorated)
    return _resource(decorated)


@acl.command(name="list")
@_filter_options
@session_options
def list_(session: Session, wanted: AclFilter) -> None:
    """List ACLs.

    \b
    barnabas acl list --topic orders --resource-pattern-type match
    barnabas acl list --principal User:alice
    """
    with session.admin() as admin:
        session.output.show_found(listed_acls(admin, wanted))


def listed_acls(admin: Admin, wanted: AclFilter) -> Found:
    """Return the ACLs that a filter selects."""
    return found_rows(_COLUMNS, _rows(admin.list_acls(wanted)), hidden_first=_HIDDEN_FIRST)


@acl.command()
@click.option(
    "--allow-principal", "allowed", metavar="TYPE:NAME", multiple=True, help="Who may; 'User:*' is everybody."
)
@click.option(
    "--deny-principal", "denied", metavar="TYPE:NAME", multiple=True, help="Who may not: outweighs every ALLOW."
)
@click.option("--operation", "operations", type=click.Choice([*OPERATIONS]), metavar="NAME", multiple=True, required=True,
              help="What: read, write, create, describe, all, …; repeat.")  # fmt: skip
@click.option("--host", default=WILDCARD, show_default=True, metavar="HOST",
              help="From where: an address, or a range such as 10.0.0.0/8.")  # fmt: skip
@click.option("--prefixed", is_flag=True, help="Every resource whose name begins so.")
@_resource
@click.option("-d", "--dry-run", is_flag=True, help="Only print the ACLs.")
@session_options
def create(
    session: Session,
    resource: Resource | None,
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    operations: tuple[str, ...],
    host: str,
    prefixed: bool,
    dry_run: bool,
) -> None:
    """Create ACLs: one for each principal and operation.

    \b
    barnabas acl create --allow-principal User:alice --operation read --topic t
    barnabas acl create --deny-principal 'User:*' --operation write --topic audit
    """
    if resource is None:
        raise click.UsageError("Name the resource: --topic, --group, --cluster or another one.")
    if not allowed and not denied:
        raise click.UsageError("Name who may or may not: --allow-principal or --deny-principal.")
    principals = [
        (str(_principal(user)), permission)
        for users, permission in ((allowed, Permission.ALLOW), (denied, Permission.DENY))
        for user in users
    ]
    wanted = [OPERATIONS[operation] for operation in operations]
    acls = acl_bindings(resource, principals, wanted, host=host, prefixed=prefixed)
    if dry_run:
        acl_rows(acls, "would be created").show(session.output)
        return
    with session.admin() as admin:
        done = created_acls(admin, acls)
    done.show(session.output)


def acl_rows(acls: Sequence[AclBinding], status: str) -> Done:
    """Return ACLs with what was done, or would be."""
    rows = [(*row, status) for row in _rows(acls)]
    return Done(found_rows((*_COLUMNS, "STATUS"), rows, hidden_first=_HIDDEN_FIRST))


def created_acls(admin: Admin, acls: Sequence[AclBinding]) -> Done:
    """Create ACLs.

    Raises:
        Failure: the broker rejects one.
    """
    for one, error in zip(acls, admin.create_acls(acls), strict=True):
        if error is not None:
            raise failure_of(error, f"{one.principal} {name_of(AclOperation, one.operation)}")
    return acl_rows(acls, "created")


@acl.command()
@_filter_options
@click.option("-d", "--dry-run", is_flag=True, help="Only print the ACLs that would be deleted.")
@session_options
def delete(session: Session, wanted: AclFilter, dry_run: bool) -> None:
    """Delete the ACLs that the options select; at least one option is needed.

    \b
    barnabas acl delete --principal User:alice --topic orders
    """
    if wanted._replace(pattern_type=PatternType.ANY) == AclFilter():
        raise click.UsageError("Select what to delete: --principal, --topic, --group or another option.")
    with session.admin() as admin:
        done = deleted_acls(admin, wanted, dry_run=dry_run)
    done.show(session.output)


def deleted_acls(admin: Admin, wanted: AclFilter, *, dry_run: bool) -> Done:
    """Delete the ACLs that a filter selects, or only show them.

    Raises:
        Failure: it selects none.
    """
    found = admin.list_acls(wanted) if dry_run else admin.delete_acls(wanted)
    if not found:
        raise Failure("no ACL is selected", "`barnabas acl list` shows which exist")
    return acl_rows(found, "would be deleted" if dry_run else "deleted")


@acl.command()
@click.option("--principal", required=True, metavar="TYPE:NAME", help="Who asks.")
@click.option("--host", required=True, metavar="ADDRESS", help="The client's address.")
@click.option("--operation", required=True, type=click.Choice([*OPERATIONS][1:]), metavar="NAME", help="What.")
@_resource
@click.option(
    "--super-user", "super_users", multiple=True, metavar="TYPE:NAME", help="One of the brokers' super.users."
)
@click.option("--allow-if-no-acl", is_flag=True, help="The brokers have allow.everyone.if.no.acl.found=true.")
@session_options
def explain(
    session: Session,
    resource: Resource | None,
    principal: str,
    host: str,
    operation: str,
    super_users: tuple[str, ...],
    allow_if_no_acl: bool,
) -> None:
    """Say whether a principal may, and which ACL decides.

    \b
    barnabas acl explain --principal User:alice --operation read --topic orders

    Brokers keep super.users and allow.everyone.if.no.acl.found to themselves: say them here.
    """
    if resource is None:
        raise click.UsageError("Name the resource: --topic, --group, --cluster or another one.")
    asked = Question(_principal(principal), host, OPERATIONS[operation], resource)
    with session.admin() as admin:
        session.output.show_found(explained_acls(admin, asked, super_users, allow_if_no_acl=allow_if_no_acl))


class Question(NamedTuple):
    """Whether a principal at an address may do something with a resource."""

    principal: Principal
    host: str
    operation: AclOperation
    resource: Resource


def explained_acls(
    admin: Admin, asked: Question, super_users: Sequence[str] = (), *, allow_if_no_acl: bool = False
) -> Found:
    """Return whether a principal may, and which ACL decides.

    Args:
        super_users: the brokers' `super.users`.
        allow_if_no_acl: the brokers' `allow.everyone.if.no.acl.found`.
    """
    found = admin.list_acls(AclFilter(*asked.resource, PatternType.MATCH))
    authorizer = StandardAuthorizer(super_users, allow_if_no_acl)
    authorizer.replace({str(index).encode(): each for index, each in enumerate(found)})
    decision = authorizer.explain(asked.principal, java_address(asked.host), asked.operation, *asked.resource)
    because = decision.rule.partition("(")[0]
    cells: tuple[str | None, ...] = _rows([decision.acl])[0] if decision.acl is not None else (None,) * len(_COLUMNS)
    answer = "ALLOWED" if decision.is_allowed else "DENIED"
    columns = ("DECISION", "RULE", *_COLUMNS)
    return found_rows(columns, [(answer, because, *cells)], hidden_first=("TYPE", *_HIDDEN_FIRST))
