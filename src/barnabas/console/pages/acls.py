"""Access control lists: `barnabas acl list`, and `barnabas acl explain` if the address has a question."""

from __future__ import annotations

from barnabas.cli.acl import Question, explained_acls, listed_acls
from barnabas.cli.failure import Failure
from barnabas.console.acl_fields import OPERATION, PRINCIPAL, RESOURCE, operation_of, principal_of, resource_of
from barnabas.console.asked import Asked
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field, Form, Page, Section, asked_section, failed_section
from barnabas.security.acls import AclFilter
from barnabas.security.principal import parse_principal

_FIELDS = (
    PRINCIPAL,
    Field("host", "From the address", hint="10.0.0.7"),
    OPERATION._replace(choices=OPERATION.choices[1:]),
    *RESOURCE,
    Field("super_users", "The brokers' super.users", hint="User:admin;User:ops"),
    Field("allow_if_no_acl", "The brokers allow everyone if there is no ACL", kind="box"),
)
_HEADING = "May they?"


async def acls(asked: Asked) -> Page:
    """Make the page; a question has the parameters of its form."""
    sections = []
    if any(asked.query.get(name) for name in ("principal", "host", "resource", "name")):
        sections.append(await _explained(asked))
    sections.append(
        await asked_section(
            asked.cluster, "acls", "ACLs", lambda admin: listed_acls(admin, AclFilter()), empty="There is no ACL yet."
        )
    )
    fields = [each._replace(value=asked.query.get(each.name, each.value)) for each in _FIELDS]
    return Page("ACLs", sections, form=Form(fields, button="May they?"))


async def _explained(asked: Asked) -> Section:
    given = Given(asked.query)
    try:
        principal = parse_principal(principal_of(given))
        resource = resource_of(given)
        if resource is None:
            raise BadForm("the resource is missing")
        question = Question(principal, given.required("host", "the address").strip(), operation_of(given), resource)
    except BadForm as error:
        return failed_section("explain", _HEADING, Failure(str(error)))
    super_users = [text for each in given.text("super_users").split(";") if (text := each.strip())]
    allow = given.is_ticked("allow_if_no_acl")

    return await asked_section(
        asked.cluster,
        "explain",
        _HEADING,
        lambda admin: explained_acls(admin, question, super_users, allow_if_no_acl=allow),
    )
