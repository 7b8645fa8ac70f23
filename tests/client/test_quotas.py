"""Quotas: what is listed and what is altered, in every version."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.client.quotas import Quota
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only

LISTED = messages.DescribeClientQuotasResponse
ALTERED = messages.AlterClientQuotasResponse


@pytest.mark.parametrize("version", every_version(messages.DescribeClientQuotasRequest))
def test_quotas_are_sorted_by_entity(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeClientQuotasRequest, version)
    entity, value, entry = LISTED.EntityData, LISTED.ValueData, LISTED.EntryData
    entries = [
        entry(entity=[entity(entity_type="user", entity_name=None)], values=[value(key="b", value=2.5)]),
        entry(
            entity=[entity(entity_type="user", entity_name="u"), entity(entity_type="client-id", entity_name="c")],
            values=[value(key="b", value=2), value(key="a", value=1)],
        ),
    ]
    memory.handlers["DescribeClientQuotasRequest"] = lambda *_: LISTED(entries=entries)
    assert admin.list_quotas() == [
        Quota((("client-id", "c"), ("user", "u")), {"a": 1.0, "b": 2.0}),
        Quota((("user", None),), {"b": 2.5}),
    ]


def test_an_error_of_the_whole_list_is_raised(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeClientQuotasRequest, 1)
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    memory.handlers["DescribeClientQuotasRequest"] = lambda *_: LISTED(
        error_code=code, error_message="no", entries=None
    )
    with pytest.raises(KafkaError, match="no") as raised:
        admin.list_quotas()
    assert raised.value.code == code


@pytest.mark.parametrize("version", every_version(messages.AlterClientQuotasRequest))
def test_values_are_set_and_removed(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.AlterClientQuotasRequest, version)
    seen: list[Any] = []

    def alter(broker_id: int, request: Any, version: int) -> Any:
        seen.append(request)
        return ALTERED(entries=[ALTERED.EntryData(error_code=0)])

    memory.handlers["AlterClientQuotasRequest"] = alter
    assert admin.alter_quotas((("user", None),), {"a": 1.5, "b": None}, validate_only=True) is None
    (request,) = seen
    assert request.validate_only
    assert [(each.entity_type, each.entity_name) for each in request.entries[0].entity] == [("user", None)]
    assert [(op.key, op.value, op.remove) for op in request.entries[0].ops] == [("a", 1.5, False), ("b", 0.0, True)]


def test_a_rejected_quota_is_an_error(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.AlterClientQuotasRequest, 1)
    entry = ALTERED.EntryData(error_code=ErrorCode.INVALID_REQUEST, error_message="not so")
    memory.handlers["AlterClientQuotasRequest"] = lambda *_: ALTERED(entries=[entry])
    error = admin.alter_quotas((("user", "u"),), {"a": 1.5})
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_REQUEST, "not so")
