"""BrokerHeartbeat at a controller's listener."""

from __future__ import annotations

import asyncio
import struct

import pytest

from barnabas.protocol.api_keys import ApiKey, api
from tests.api.controlling import Controlling


def test_a_heartbeat_is_told_with_its_connection(controlling: Controlling) -> None:
    epoch = controlling.add_broker(5)
    controlling.heard_from.clear()
    controlling.ask(api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5, broker_epoch=epoch))
    assert controlling.heard_from == [(5, epoch, "test")]


def test_a_heartbeat_is_late_after_half_an_interval(controlling: Controlling) -> None:
    epoch = controlling.add_broker(5)
    asked = []
    controlling.services.controller.handle = lambda *_, **options: (
        asked.append(options) or controlling.loop.create_future()
    )  # type: ignore
    controlling.loop.call_later(1, lambda: None)
    request = api(ApiKey.BROKER_HEARTBEAT).request_class(broker_id=5, broker_epoch=epoch)
    body = request.encode(1)
    with pytest.raises(TimeoutError):
        controlling.loop.run_until_complete(_within(controlling, 63, 1, body))
    assert asked[0]["deadline_ms"] == controlling.now_ms + 1000


async def _within(controlling: Controlling, key: int, version: int, body: bytes) -> None:
    header = struct.pack(">hhih", key, version, 42, 4) + b"test\0"
    _, result = controlling.dispatcher.dispatch(controlling.connection, memoryview(bytearray(header + body)))
    assert isinstance(result, asyncio.Future)
    await asyncio.wait_for(result, 0.1)
