"""`barnabas acl`: list, create, delete, explain. Access control lists, as `kafka-acls.sh` names them.

`explain` reads a cluster's ACLs, Apache Kafka's too, and decides here, by the class that a barnabas broker decides by.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import click

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import Session, session_options
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
_Resource = tuple[ResourceType, str]


@click.group()
def acl() -> None:
    """Access control lists: list, create, delete, explain."""


def _resource(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a resource, and pass it to the command as `resource`; None if no option is given."""

    @functools.wraps(command)
    def with_resource(cluster: bool, **others: object) -> None:
        found: list[_Resource] = [(ResourceType.CLUSTER, CLUSTER_NAME)] if cluster else []
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
        resource: _Resource | None,
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
        found = admin.list_acls(wanted)
    session.output.table(_COLUMNS, _rows(found))


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
    resource: _Resource | None,
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
    if not dry_run:
        with session.admin() as admin:
            failed = admin.create_acls(acls)
        for one, error in zip(acls, failed, strict=True):
            if error is not None:
                raise failure_of(error, f"{one.principal} {name_of(AclOperation, one.operation)}")
    status = "would be created" if dry_run else "created"
    session.output.table((*_COLUMNS, "STATUS"), [(*row, status) for row in _rows(acls)])


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
        found = admin.list_acls(wanted) if dry_run else admin.delete_acls(wanted)
    if not found:
        raise Failure("no ACL is selected", "`barnabas acl list` shows which exist")
    status = "would be deleted" if dry_run else "deleted"
    session.output.table((*_COLUMNS, "STATUS"), [(*row, status) for row in _rows(found)])


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
    resource: _Resource | None,
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
    who = _principal(principal)
    with session.admin() as admin:
        found = admin.list_acls(AclFilter(resource[0], resource[1], PatternType.MATCH))
    authorizer = StandardAuthorizer(super_users, allow_if_no_acl)
    authorizer.replace({str(index).encode(): each for index, each in enumerate(found)})
    decision = authorizer.explain(who, java_address(host), OPERATIONS[operation], *resource)
    because = decision.rule.partition("(")[0]
    cells: tuple[str | None, ...] = _rows([decision.acl])[0] if decision.acl is not None else (None,) * len(_COLUMNS)
    answer = "ALLOWED" if decision.is_allowed else "DENIED"
    session.output.table(("DECISION", "RULE", *_COLUMNS), [(answer, because, *cells)])
