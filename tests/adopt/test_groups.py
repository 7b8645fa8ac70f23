"""Groups of all types."""

from __future__ import annotations

from dataclasses import replace

from barnabas.adopt.finding import Verdict
from barnabas.adopt.groups import findings_of_groups
from barnabas.client.admin import GroupDescription, GroupListing, Node
from tests.adopt.states import HEALTHY, of_verdict


def listing(name: str, kind: str, state: str = "Stable") -> GroupListing:
    return GroupListing(name, "consumer", state, kind, 1)


def described(assignor: str) -> GroupDescription:
    return GroupDescription("g", "consumer", "consumer", "Stable", assignor, [], Node(1, "localhost", 9092))


def test_types_that_barnabas_has() -> None:
    groups = [listing("a", "Classic"), listing("b", ""), listing("c", "share"), listing("d", "streams")]
    found = list(findings_of_groups(replace(HEALTHY, groups=groups)))
    assert [each.what for each in found] == [
        f"{count}: members and offsets stay" for count in ("2 classic groups", "1 share group", "1 streams group")
    ]


def test_types_and_assignors_that_it_does_not_have() -> None:
    state = replace(
        HEALTHY, groups=[listing("q", "queue")], group_descriptions={"g": described("mine"), "h": described("range")}
    )
    found = list(findings_of_groups(state))
    assert [(each.where, each.verdict) for each in found] == [
        (("group q",), Verdict.BLOCKS),
        (("group g",), Verdict.BLOCKS),
    ]


def test_rebalances() -> None:
    found = list(findings_of_groups(replace(HEALTHY, groups=[listing("a", "classic", "PreparingRebalance")])))
    assert of_verdict(found, Verdict.DIFFERS) == ["1 group in a rebalance"]


def test_no_groups() -> None:
    assert list(findings_of_groups(HEALTHY)) == []
