"""Names of APIs and errors, as a test writes them."""

from __future__ import annotations

import pytest

from barnabas.embedded.fault_arguments import (
    api_key,
    checked_ahead,
    checked_nth,
    checked_seconds,
    checked_times,
    checked_where,
    error_code,
)
from barnabas.embedded.fault_plan import ANY_REQUEST, Where
from barnabas.protocol.errors import ErrorCode


@pytest.mark.parametrize(("name", "key"), [("Produce", 0), ("OffsetCommit", 8), ("FetchRequest", 1), (3, 3)])
def test_an_api(name: str | int, key: int) -> None:
    assert api_key(name) == key


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("OfsetCommit", "api='OfsetCommit': brokers serve no such API; did you mean OffsetCommit?"),
        ("Vote", "api='Vote': brokers serve no such API"),
        (52, "api=52: brokers serve no such API; pass its name, such as 'Produce'"),
    ],
)
def test_what_brokers_do_not_serve(name: str | int, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        api_key(name)
    assert str(caught.value) == text


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", 6, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_an_error(error: str | int) -> None:
    assert error_code(error) == 6


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "NOT_LEADER_OR_FOLOWER",
            "error='NOT_LEADER_OR_FOLOWER': Kafka has no such error; did you mean NOT_LEADER_OR_",
        ),
        ("NONE", "error='NONE': Kafka has no such error"),
        (0, "error=0: Kafka has no such error; pass its name"),
        (9999, "error=9999: Kafka has no such error; pass its name"),
    ],
)
def test_what_is_no_error(error: str | int, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        error_code(error)
    assert str(caught.value).startswith(text)


def test_how_often() -> None:
    assert [checked_times(times) for times in (1, 7, None)] == [1, 7, -1]
    for times in (0, -1, True, "2"):
        with pytest.raises(ValueError, match=r"^times=.*: pass 1 or more, or None for every request$"):
            checked_times(times)  # type: ignore[arg-type]


def test_seconds() -> None:
    assert checked_seconds(0) == 0.0
    for seconds in (-1, float("inf"), "1", float("nan")):
        with pytest.raises(ValueError, match="pass 0 or more"):
            checked_seconds(seconds)  # type: ignore[arg-type]


def test_a_clock_goes_both_ways() -> None:
    assert (checked_ahead(-60), checked_ahead(3600)) == (-60.0, 3600.0)
    for seconds in (1e12, float("nan"), "1", True):
        with pytest.raises(ValueError, match="at most 100 years"):
            checked_ahead(seconds)  # type: ignore[arg-type]


def test_which_requests() -> None:
    assert checked_where(None, None, None, None) == ANY_REQUEST
    assert checked_where("orders", 0, "shop", "g") == Where("orders", 0, "shop", "g")
    for wrong in (("", None, None, None), (None, None, 3, None), (None, None, None, b"g")):
        with pytest.raises(ValueError, match="pass its name as text, or leave it out"):
            checked_where(*wrong)  # type: ignore[arg-type]
    for partition in (-1, "0", True):
        with pytest.raises(ValueError, match="pass 0 or more, or leave it out"):
            checked_where(None, partition, None, None)  # type: ignore[arg-type]
    assert checked_nth(2) == 2
    for nth in (0, "1", None, True):
        with pytest.raises(ValueError, match="pass 1 for the next request"):
            checked_nth(nth)  # type: ignore[arg-type]
