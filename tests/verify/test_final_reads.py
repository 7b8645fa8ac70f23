"""The reads after the last write."""

from __future__ import annotations

import time
from typing import Any

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.verify import final_reads
from barnabas.verify.consumer import Layout


class DyingAdmin:
    """An Admin whose broker dies under the first requests."""

    failures = 2

    def __init__(self, bootstrap: str) -> None:
        assert bootstrap == "b:1"

    def __enter__(self) -> DyingAdmin:
        return self

    def __exit__(self, *_: object) -> None: ...

    def list_offsets(self, asked: dict[Any, Any]) -> Any:
        if DyingAdmin.failures:
            DyingAdmin.failures -= 1
            raise ConnectionLost("lost the connection")
        return dict.fromkeys(asked, FOUND)


FOUND = OffsetAndTimestamp(offset=7, timestamp=-1, leader_epoch=0)


def test_the_ends_are_asked_again_when_a_broker_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final_reads, "Admin", DyingAdmin)
    monkeypatch.setattr(final_reads, "results", lambda found: found)
    monkeypatch.setattr(final_reads, "RETRY_S", 0)
    layout = Layout(["t"], 2)
    assert final_reads._ends("b:1", layout, (0, 1), time.monotonic() + 60) == {0: 7, 1: 7}
    monkeypatch.setattr(DyingAdmin, "failures", 1)
    with pytest.raises(ConnectionLost):
        final_reads._ends("b:1", layout, (0, 1), time.monotonic() - 1)
