"""Strays: renamed, counted, and some of them named."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.offset_checkpoints import Key
from barnabas.log.stray_logs import set_aside

KEYS: list[Key] = [("t", index) for index in range(8)]


def test_strays_are_renamed_and_some_are_named(caplog: pytest.LogCaptureFixture) -> None:
    moved = asyncio.run(set_aside("/data", KEYS, lambda key: key[1] > 0, lambda key: f"/data/t-{key[1]}.x-stray"))
    assert moved == KEYS[1:]
    assert "set aside and kept: t-1.x-stray, t-2.x-stray" in caplog.text
    assert "t-5.x-stray and 2 more" in caplog.text


def test_a_disk_that_fails() -> None:
    def fails(key: Key) -> str:
        raise OSError(5, "broken")

    with pytest.raises(KafkaStorageError, match="cannot set a stray log aside: broken"):
        asyncio.run(set_aside("/data", KEYS, lambda _: True, fails))
