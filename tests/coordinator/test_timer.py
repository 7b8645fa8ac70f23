"""Named timers."""

from __future__ import annotations

from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.timer import RETRY_MS, CoordinatorTimer, TimerOperation
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.virtual_loop import VirtualLoop


def test_a_key_has_one_timer() -> None:
    loop, fired = VirtualLoop(), list[str]()
    timer = CoordinatorTimer(loop, lambda key, operation: fired.append(f"{key} {operation().response}"))
    timer.schedule("a", 10, lambda: CoordinatorResult("first"))
    timer.schedule("b", 10, lambda: CoordinatorResult("b"))
    timer.schedule("a", 20, lambda: CoordinatorResult("second"))
    assert (len(timer), "a" in timer, repr(timer)) == (2, True, "<CoordinatorTimer ['a', 'b']>")
    loop.advance(10)
    assert fired == ["b b"]
    loop.advance(10)
    assert fired == ["b b", "a second"]
    assert len(timer) == 0


def test_cancel() -> None:
    loop, fired = VirtualLoop(), list[str]()
    timer = CoordinatorTimer(loop, lambda key, operation: fired.append(key))
    for key in ("a", "b", "c"):
        timer.schedule(key, 10, lambda: CoordinatorResult(None))
    timer.cancel("a")
    timer.cancel("unknown")
    loop.advance(5)
    timer.cancel_all()
    loop.advance(10)
    assert fired == []


def test_a_fired_timer_may_schedule_itself() -> None:
    loop, count = VirtualLoop(), 0

    def again(key: str, operation: object) -> None:
        nonlocal count
        count += 1
        timer.schedule(key, 10, lambda: CoordinatorResult(None))

    timer = CoordinatorTimer(loop, again)
    timer.schedule("a", 10, lambda: CoordinatorResult(None))
    loop.advance(35)
    assert count == 3


def test_what_is_computed_has_a_key_and_reaches_the_operation() -> None:
    loop, fired = VirtualLoop(), list[str]()
    timer = CoordinatorTimer(loop, lambda key, operation: fired.append(f"{key} {operation().response}"))
    timer.compute("a", lambda: 2, lambda found: CoordinatorResult(found + 1))
    timer.compute("b", lambda: 5, lambda found: CoordinatorResult(found))
    assert ("a" in timer, fired) == (True, [])
    timer.cancel("b")
    loop.advance(0)
    assert (fired, len(timer)) == (["a 3"], 0)


def test_what_is_computed_when_the_shard_ends_is_dropped() -> None:
    loop, fired = VirtualLoop(), list[str]()
    timer = CoordinatorTimer(loop, lambda key, operation: fired.append(key))
    timer.compute("a", lambda: 1, lambda found: CoordinatorResult(found))
    timer.cancel_all()
    loop.advance(0)
    assert fired == []


def test_what_the_log_refuses_is_tried_again() -> None:
    loop, tries, told = VirtualLoop(), list[int](), list[KafkaError | None]()
    outcomes: list[KafkaError | None] = [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), None]

    def write(key: str, operation: TimerOperation) -> None:
        tries.append(len(tries))
        on_append = operation().on_append
        assert on_append is not None
        on_append(outcomes[tries[-1]])

    timer = CoordinatorTimer(loop, write)
    timer.schedule_until_written("a", 10, lambda: CoordinatorResult(None, on_append=told.append), "the end of a")
    loop.advance(10 + RETRY_MS)
    assert (tries, told, len(timer)) == ([0, 1], outcomes, 0)
    outcomes[:] = [KafkaError(ErrorCode.NOT_COORDINATOR)] * 3
    timer.schedule_until_written("a", 10, lambda: CoordinatorResult(None), "the end of a")
    loop.advance(10 + RETRY_MS)
    assert (tries, len(timer)) == ([0, 1, 2], 0), "its timers have ended"
