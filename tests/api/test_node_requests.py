"""What brokers and controllers send in their own name, at a controller that is active and at one that is not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    UnregisterBrokerRequest,
)
from tests.api.controlling import Controlling


def test_a_broker_registers_beats_and_gets_producer_ids(controlling: Controlling) -> None:
    epoch = controlling.register_broker(5).broker_epoch
    assert epoch > 0
    answer = controlling.beat(5, epoch)
    assert (answer.error_code, answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (
        0,
        True,
        False,
        False,
    )
    block = controlling.ask(AllocateProducerIdsRequest(broker_id=5, broker_epoch=epoch))
    assert (block.error_code, block.producer_id_start, block.producer_id_len) == (0, 0, 1000)
    assert controlling.beat(5, epoch - 1).error_code == ErrorCode.STALE_BROKER_EPOCH


NOT_CONTROLLER: list[tuple[Any, str]] = [
    (AllocateProducerIdsRequest(broker_id=5), "error_code"),
    (AlterPartitionRequest(broker_id=5), "error_code"),
    (UnregisterBrokerRequest(broker_id=5), "error_code"),
    (api(ApiKey.BROKER_REGISTRATION).request_class(broker_id=5), "error_code"),
    (api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5), "error_code"),
    (api(ApiKey.CONTROLLER_REGISTRATION).request_class(controller_id=5), "error_code"),
    (api(ApiKey.ASSIGN_REPLICAS_TO_DIRS).request_class(broker_id=5), "error_code"),
]


@pytest.mark.parametrize(("request_", "field"), NOT_CONTROLLER, ids=lambda value: type(value).__name__)
def test_a_controller_that_is_not_active_says_so(controlling: Controlling, request_: Any, field: str) -> None:
    controlling.services.controller.close()
    assert getattr(controlling.ask(request_), field) == ErrorCode.NOT_CONTROLLER
