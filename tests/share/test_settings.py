"""What a share group's settings mean to a partition leader."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.share.settings import ShareSettings, duration_ms
from barnabas.share.window import Limits
from tests.share.test_share_partition import Settings


class Letters:
    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled

    def is_enabled(self, group_id: str) -> bool:
        assert group_id == "g"
        return self.enabled

    def write(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


def with_value(name: str, value: object) -> ShareSettings:
    settings = Settings()
    settings.values[name] = value
    return ShareSettings(settings)


def test_limits() -> None:
    assert ShareSettings(Settings()).limits("g", 100.0) == Limits(
        max_delivery_count=5, max_record_locks=2000, lock_until=130.0, renew_enabled=True, dead_letters=False
    )
    assert not with_value("share.renew.acknowledge.enable", False).limits("g", 0.0).renew_enabled


@pytest.mark.parametrize("enabled", [True, False])
def test_dead_letters_are_written_if_the_group_has_them(enabled: bool) -> None:
    assert ShareSettings(Settings(), Letters(enabled=enabled)).limits("g", 0.0).dead_letters is enabled


@pytest.mark.parametrize(("name", "level"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_isolation_level(name: str, level: int) -> None:
    assert with_value("share.isolation.level", name).isolation_level("g") == level


@pytest.mark.parametrize(
    ("strategy", "timestamp"),
    [
        ("latest", -1),
        ("earliest", -2),
        (" Earliest ", -2),
        ("by_duration:PT1H", 1_000_000 - 3_600_000),
        ("BY_DURATION:pt2s", 1_000_000 - 2000),
    ],
)
def test_where_a_new_group_begins(strategy: str, timestamp: int) -> None:
    assert with_value("share.auto.offset.reset", strategy).reset_timestamp("g", 1_000_000) == timestamp


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("PT1M", 60_000),
        ("PT1S", 1000),
        ("PT0.5S", 500),
        ("PT0.000000001S", 0),
        ("P2DT3H4M5.006S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5006),
        ("-PT1M", -60_000),
        ("PT-1M", -60_000),
        ("-PT-1M", 60_000),
        ("+PT+1M", 60_000),
        ("pt1h", 3_600_000),
        (" PT1S ", 1000),
    ],
)
def test_durations_are_javas(text: str, ms: int) -> None:
    assert duration_ms(text) == ms
