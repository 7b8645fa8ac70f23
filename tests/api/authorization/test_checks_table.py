"""`api/authorization.tsv` and the tables of checks say the same, and no API is without a row."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import barnabas.api
from barnabas.api import APIS
from barnabas.api.authorization.checks import (
    BROKER_CHECKS,
    BY_HANDLER,
    CONTROLLER_CHECKS,
    DECIDED_CHECKS,
    FORWARDED,
    NOTHING,
    refused,
)
from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import ErrorCode
from barnabas.security.acls import AclOperation, ResourceType
from tests.api.authorization.rows import ROWS

OWN_FORM = (48, 49)
"""Their refusals are no exceptions; `test_checks` plays them."""

TABLE = Path(barnabas.api.__file__).parent / "authorization.tsv"


class Line(NamedTuple):
    key: int
    api: str
    listener: str
    part: str
    resource: str
    operation: str
    rule: str
    error: str
    place: str


@cache
def lines() -> tuple[Line, ...]:
    text = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    header, *rest = csv.reader(text, delimiter="\t")
    assert tuple(header) == Line._fields
    return tuple(Line(int(key), *others) for key, *others in rest)


def keys(listener: str) -> set[int]:
    return {line.key for line in lines() if line.listener == listener}


def test_every_api_has_a_row_and_a_check() -> None:
    assert keys("B") | keys("A") >= APIS.keys()
    assert keys("C") | keys("A") >= CONTROLLER_APIS.keys()
    assert BROKER_CHECKS.keys() == APIS.keys()
    assert CONTROLLER_CHECKS.keys() == CONTROLLER_APIS.keys()


def test_who_decides() -> None:
    forwarded = {int(key) for key, check in BROKER_CHECKS.items() if check is FORWARDED}
    assert keys("B") == BROKER_CHECKS.keys() - forwarded
    assert keys("A") == DECIDED_CHECKS.keys()
    assert forwarded <= DECIDED_CHECKS.keys()
    assert keys("C") == CONTROLLER_CHECKS.keys() - DECIDED_CHECKS.keys()


def test_an_api_asks_for_nothing_if_its_only_row_says_so() -> None:
    for listener, table in (("B", BROKER_CHECKS), ("C", CONTROLLER_CHECKS)):
        silent = {int(key) for key, check in table.items() if check is NOTHING}
        only = {
            key
            for key in keys(listener)
            if {line.rule for line in lines() if (line.key, line.listener) == (key, listener)} == {"none"}
        }
        assert silent == only


def test_the_words_are_kafkas() -> None:
    for line in lines():
        assert line.api == api(line.key).name
        assert line.rule in ("need", "each", "all", "hide", "or", "bits", "none"), line
        if line.rule != "none":
            assert line.resource in ResourceType.__members__, line
            assert line.operation.removesuffix(" on any") in AclOperation.__members__ or line.rule == "bits", line
        assert line.error == "-" or line.error in ErrorCode.__members__, line


@pytest.mark.parametrize("listener", ["B", "C", "A"])
def test_a_request_that_needs_the_cluster_is_refused_as_its_row_says(listener: str) -> None:
    """The rows `need` of CLUSTER are the whole of most APIs: their checks are asked what they ask for."""
    table = {"B": BROKER_CHECKS, "C": CONTROLLER_CHECKS, "A": DECIDED_CHECKS}[listener]
    for key, check in table.items():
        own = [line for line in lines() if (line.key, line.listener) == (key, listener)]
        if (
            len(own) != 1
            or own[0].rule != "need"
            or own[0].resource != "CLUSTER"
            or check is BY_HANDLER
            or key in OWN_FORM
        ):
            continue
        asked = _Cluster()
        with pytest.raises(PermissionError):
            check(asked, None, None).send(None)  # type: ignore[attr-defined]
        assert asked.operations == [AclOperation[own[0].operation]], own[0].api


class _Cluster:
    """An asker who is refused, and notes what he was asked."""

    def __init__(self) -> None:
        self.operations: list[AclOperation] = []

    def need_cluster(self, operation: AclOperation) -> None:
        self.operations.append(operation)
        raise PermissionError


def test_an_api_without_a_check_is_refused() -> None:
    asked = _Cluster()
    with pytest.raises(PermissionError):
        refused(asked, None, None).send(None)  # type: ignore[arg-type]
    assert asked.operations == [AclOperation.UNKNOWN], "an operation that nobody may do but a super user"


def test_every_right_of_a_client_is_played() -> None:
    """`rows` has each operation on each resource that a client needs, except these."""
    played = {
        (row.make("exact").API_KEY, right.kind.name, right.operation.name) for row in ROWS for right in row.rights
    }
    missing = {
        (line.api, line.resource, line.operation)
        for line in lines()
        if line.listener in "BA"
        and line.rule in ("need", "each", "hide")
        and line.key in APIS
        and (line.key, line.resource, line.operation.removesuffix(" on any")) not in played
    }
    assert missing == {
        ("AlterConfigs", "CLUSTER", "ALTER_CONFIGS"),
        ("AlterConfigs", "GROUP", "ALTER_CONFIGS"),
        ("CreateDelegationToken", "USER", "CREATE_TOKENS"),
        ("DeleteTopics", "TOPIC", "DELETE"),
        ("DescribeDelegationToken", "USER", "DESCRIBE_TOKENS"),
        ("DescribeTransactions", "TOPIC", "DESCRIBE"),
        ("InitProducerId", "TRANSACTIONAL_ID", "TWO_PHASE_COMMIT"),
        ("ShareAcknowledge", "TOPIC", "READ"),
        ("ShareFetch", "TOPIC", "READ"),
        ("StreamsGroupTopologyDescriptionUpdate", "GROUP", "READ"),
        ("UnregisterController", "CLUSTER", "ALTER"),
    }
