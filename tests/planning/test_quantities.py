"""Rates and sizes as people write them."""

import pytest

from barnabas.planning.quantities import parse_rate, parse_size, per_second


@pytest.mark.parametrize(
    ("text", "rate"), [("500MB/s", 500e6), ("1 GB/s", 1e9), ("2.5kB/s", 2500), ("7B/s", 7), ("100000/s", 50e6)]
)
def test_rates(text: str, rate: float) -> None:
    assert parse_rate(text, record_size=500) == rate


@pytest.mark.parametrize("text", ["", "500", "500MB", "0MB/s", "-1MB/s", "5M/s", "5 MiB/s", "1e3/s"])
def test_what_is_not_a_rate(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid rate: write 500MB/s"):
        parse_rate(text, record_size=1)


@pytest.mark.parametrize(("text", "size"), [("500", 500), ("1kB", 1000), ("1KB", 1000), ("2TB", 2e12), ("1.5G", 1.5e9)])
def test_sizes(text: str, size: float) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "kB", "1MiB", "1MB/s"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid size"):
        parse_size(text)


def test_words() -> None:
    assert per_second(25e6) == "25.0 MB/s"
