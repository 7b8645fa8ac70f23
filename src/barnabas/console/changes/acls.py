"""Access control lists: `barnabas acl create` and `acl delete`."""

from __future__ import annotations

from barnabas.cli.acl import acl_rows, created_acls, deleted_acls
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin
from barnabas.console.acl_fields import OPERATION, PRINCIPAL, RESOURCE, operation_of, principal_of, resource_of
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field
from barnabas.security.acl_words import acl_bindings
from barnabas.security.acls import WILDCARD, AclFilter, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.hosts import parse_range
from barnabas.words.printable import printable

_HOST = Field("host", "From the address", hint="any; or 10.0.0.7, 10.0.0.0/8")
_PERMISSIONS = (("allow", "may"), ("deny", "may not: outweighs every other"))
CREATION_FIELDS = (
    PRINCIPAL._replace(is_required=True),
    Field("permission", "It", "allow", "choice", _PERMISSIONS),
    OPERATION,
    *RESOURCE,
    Field("prefixed", "Every resource whose name begins so", kind="box"),
    _HOST,
)
DELETION_FIELDS = (
    PRINCIPAL,
    Field("permission", "It", "", "choice", (("", "either"), *_PERMISSIONS)),
    OPERATION._replace(choices=(("", "any"), *OPERATION.choices)),
    *RESOURCE,
    _HOST._replace(hint="any; or exactly this"),
)


def creation(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan an ACL."""
    principal = principal_of(given)
    permission = Permission[given.choice("permission", "the permission", ("allow", "deny")).upper()]
    resource = resource_of(given)
    if resource is None:
        raise BadForm("the resource is missing")
    host = given.text("host").strip() or WILDCARD
    try:
        if "/" in host:
            parse_range(host)
    except ValueError as error:
        raise BadForm(str(error)) from None
    acls = acl_bindings(
        resource, [(principal, permission)], [operation_of(given)], host=host, prefixed=given.is_ticked("prefixed")
    )
    there = admin.list_acls(AclFilter())
    preview = acl_rows(acls, "would be created")
    if all(each in there for each in acls):
        preview = preview._replace(notes=["there is this ACL already"])
    return Planned(
        f"Create an ACL of {printable(principal)}",
        f"ACL of {principal}",
        preview,
        lambda admin, _: created_acls(admin, acls),
        basis="",
        after=("acls", {}),
    )


def deletion(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan that the ACLs which the form selects end."""
    permission, resource = given.text("permission"), resource_of(given)
    resource_type, name = resource or (ResourceType.ANY, None)
    wanted = AclFilter(
        resource_type,
        name,
        PatternType.ANY,
        principal_of(given) if given.text("principal") else None,
        given.text("host").strip() or None,
        operation_of(given) if given.text("operation") else AclOperation.ANY,
        Permission[given.choice("permission", "the permission", ("allow", "deny")).upper()]
        if permission
        else Permission.ANY,
    )
    if wanted == AclFilter():
        raise BadForm("nothing is selected: name a principal, a resource or another part")
    preview = deleted_acls(admin, wanted, dry_run=True)
    count = counted(len(preview.found.data), "ACL")
    return Planned(
        f"Delete {count}",
        count,
        preview,
        lambda admin, _: deleted_acls(admin, wanted, dry_run=False),
        destroys=wanted.principal or wanted.resource_name or count,
        after=("acls", {}),
    )
