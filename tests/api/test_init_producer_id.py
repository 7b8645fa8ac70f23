"""InitProducerId without a transactional id, in every version; with one it is in `test_transactions`."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import InitProducerIdRequest
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting


@pytest.mark.parametrize("version", range(6))
def test_idempotent_producers_get_new_ids(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answers = [host.ask(22, request, version) for _ in range(3)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [(0, 4000 + n, 0) for n in range(3)]


@pytest.mark.parametrize("version", range(3, 6))
def test_an_old_id_is_replaced_by_a_new_one(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=17, producer_epoch=4)
    answer = host.ask(22, request, version)
    assert (answer.producer_id, answer.producer_epoch) == (4000, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 3), (3, -1)])
def test_an_id_without_an_epoch_is_an_invalid_request(hosting: Hosting, producer_id: int, epoch: int) -> None:
    host = GroupHosting(hosting)
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=0, producer_id=producer_id, producer_epoch=epoch
    )
    assert host.ask(22, request, 4).error_code == ErrorCode.INVALID_REQUEST


def test_an_empty_transactional_id_is_an_invalid_request(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    answer = host.ask(22, InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000), 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)
