"""Rules, users, tokens and quotas."""

from __future__ import annotations

from dataclasses import replace

from barnabas.adopt.finding import Verdict
from barnabas.adopt.rights import findings_of_rights
from barnabas.client.admin import Quota
from barnabas.client.scram_users import ScramUser
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from tests.adopt.states import HEALTHY, of_verdict


def rule(principal: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, principal, "*", AclOperation.READ, Permission.ALLOW
    )


def test_a_cluster_without_any() -> None:
    assert list(findings_of_rights(HEALTHY)) == []


def test_all_that_stay_as_they_are() -> None:
    state = replace(
        HEALTHY,
        acls=[rule("User:a")],
        users=[ScramUser("a", "SCRAM-SHA-256", 4096)],
        tokens=1,
        quotas=[Quota((("user", "a"),), {"producer_byte_rate": 1.0})],
        client_metrics={"all": []},
    )
    found = list(findings_of_rights(state))
    assert {each.verdict for each in found} == {Verdict.WORKS}
    assert [each.what.split(":")[0] for each in found] == [
        "1 access control list",
        "1 passwords of SCRAM",
        "1 delegation token",
        "quotas of 1 users, clients or addresses",
        "1 metrics subscription",
    ]


def test_principals_and_quotas_of_other_kinds() -> None:
    state = replace(HEALTHY, acls=[rule("Group:ops"), rule("User:a")], quotas=[Quota((("team", "a"),), {})])
    assert of_verdict(list(findings_of_rights(state)), Verdict.DIFFERS) == [
        "rules for principals that are no users: Group:ops",
        "a quota of team, which barnabas does not have",
    ]
