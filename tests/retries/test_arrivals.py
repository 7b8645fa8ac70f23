"""The order of records that wait: partitions wait apart, and take turns."""

from dataclasses import dataclass

from barnabas.retries.arrivals import Arrivals
from barnabas.retries.headers import FailureHeaders, write_failure
from barnabas.retries.policy import RetryPolicy
from barnabas.retries.routing import Router


@dataclass
class Consumed:
    """A message as the library gives it."""

    name: str
    number: int
    place: int
    due_ms: int | None = None

    def topic(self) -> str:
        return self.name

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return self.place

    def timestamp(self) -> tuple[int, int]:
        return (1, 5)

    def key(self) -> str:
        return "k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return None if self.due_ms is None else list(write_failure(FailureHeaders("t", 0, 1, due_ms=self.due_ms)))


def arrivals(*messages: Consumed) -> Arrivals:
    found = Arrivals(Router(RetryPolicy("t.dlq", delays=("10s",)), "g", {"t.retry.1": 1, "t.dlq": 1}))
    for each in messages:
        found.add(each)  # type: ignore[arg-type]
    return found


def places(found: Arrivals, now_ms: int) -> list[tuple[str, int]]:
    return [(where[0], offset) for where, offset, _ in found.take(now_ms)]


def test_a_partition_waits_for_its_first_record() -> None:
    found = arrivals(Consumed("t.retry.1", 0, 3, 100), Consumed("t.retry.1", 0, 4, 50), Consumed("t", 0, 8))
    assert (found.has_due(99), found.not_due(99)) == (True, {("t.retry.1", 0): 100})
    assert places(found, 99) == [("t", 8)]
    assert not found.has_due(99)
    assert places(found, 100) == [("t.retry.1", 3), ("t.retry.1", 4)]
    assert repr(found) == "<Arrivals partitions=0 records=0>"


def test_partitions_take_turns() -> None:
    found = arrivals(Consumed("t", 0, 1), Consumed("t", 0, 2), Consumed("t", 1, 1))
    taken = [next(found.take(0))[:2] for _ in range(3)]
    assert taken == [(("t", 0), 1), (("t", 1), 1), (("t", 0), 2)]


def test_partitions_that_are_given_away() -> None:
    found = arrivals(Consumed("t", 0, 1))
    found.clear()
    assert places(found, 0) == []
