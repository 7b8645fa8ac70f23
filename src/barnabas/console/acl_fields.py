"""The fields of forms about access control lists: who, what, and on which resource."""

from __future__ import annotations

from barnabas.cli.acl import Resource
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field
from barnabas.security.acl_words import NAMED_TYPES, OPERATIONS
from barnabas.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.security.principal import parse_principal
from barnabas.words.printable import printable

PRINCIPAL = Field("principal", "Principal", hint="User:alice")
OPERATION = Field("operation", "Operation", "read", "choice", tuple((each, each) for each in OPERATIONS))
_RESOURCES = ("", *NAMED_TYPES, "cluster")
RESOURCE = (
    Field("resource", "Resource", "", "choice", tuple((each, each or "choose one") for each in _RESOURCES)),
    Field("name", "Its name", hint="orders; '*' is every one"),
)


def principal_of(given: Given) -> str:
    """Return the principal that a form names.

    Raises:
        BadForm: it is not one.
    """
    text = given.required("principal", "the principal").strip()
    try:
        return str(parse_principal(text))
    except ValueError:
        raise BadForm(f"“{printable(text)}” is not a principal: write Type:name, such as User:alice") from None


def operation_of(given: Given) -> AclOperation:
    """Return the operation that a form names.

    Raises:
        BadForm: there is no such one.
    """
    return OPERATIONS[given.choice("operation", "the operation", OPERATIONS)]


def resource_of(given: Given) -> Resource | None:
    """Return the resource that a form names; None if it names none.

    Raises:
        BadForm: it has a name without a type, or the other way round.
    """
    kind, name = given.choice("resource", "the resource", _RESOURCES), given.text("name")
    if kind == "cluster":
        return ResourceType.CLUSTER, CLUSTER_NAME
    if bool(kind) != bool(name):
        raise BadForm("a resource has a type and a name" if kind else "choose the type of the resource that is named")
    return (NAMED_TYPES[kind], name) if kind else None
