"""What JSON does not have becomes text."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from barnabas.decoding.plain_data import as_json, plain


def test_every_kind() -> None:
    found = plain(
        {
            1: [b"\xff", Decimal("1.50"), float("nan"), float("-inf"), 2**70, None, True],
            "at": datetime(2026, 1, 2, tzinfo=UTC),
            "on": date(2026, 1, 2),
            "id": UUID(int=5),
            "in": (1, {"a": memoryview(b"ab")}),
        }
    )
    assert found == {
        "1": ["/w==", "1.50", "nan", "-inf", 2**70, None, True],
        "at": "2026-01-02T00:00:00+00:00",
        "on": "2026-01-02",
        "id": "00000000-0000-0000-0000-000000000005",
        "in": [1, {"a": "YWI="}],
    }
    assert json.loads(as_json("avro", found, 3, None).text) == found


def test_text_is_cut_and_data_is_not() -> None:
    found = as_json("msgpack", ["€" * 10], 31, 5)
    assert (found.text, found.is_cut, found.data, found.size) == ('["€€€', True, ["€" * 10], 31)


def test_depth_is_bounded() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        plain(deep)
