"""The memory of requests being read: one request beyond the limit, and turns in the order of asking."""

from __future__ import annotations

from barnabas.server.request_memory import RequestMemory


class Reader:
    """A connection that asks for memory, and notes its name when it gets some."""

    def __init__(self, memory: RequestMemory, name: str, size: int, got: list[str]) -> None:
        self._memory, self._name, self._size, self._got = memory, name, size, got

    def ask(self) -> None:
        if self._memory.take(self.ask, self._size):
            self._got.append(self._name)


def test_one_request_may_exceed_the_limit_and_the_next_one_waits() -> None:
    memory = RequestMemory(100)
    assert memory.take(lambda: None, 99)
    assert memory.take(lambda: None, 1000)
    assert not memory.take(lambda: None, 1)
    assert (memory.used, memory.depleted) == (1099, 1)
    assert repr(memory) == "<RequestMemory 1099/100 waiting=1>"


def test_memory_goes_to_those_who_wait_in_order_until_it_is_used_up() -> None:
    memory, got = RequestMemory(100), []
    assert memory.take(lambda: None, 100)
    for name, size in (("first", 60), ("second", 60), ("third", 60)):
        Reader(memory, name, size, got).ask()
    assert memory.depleted == 3
    memory.give_back(100)
    assert (got, memory.used) == (["first", "second"], 120)
    memory.give_back(60)
    assert (got, memory.used) == (["first", "second", "third"], 120)


def test_a_reader_that_asks_twice_waits_once() -> None:
    memory, got = RequestMemory(10), []
    assert memory.take(lambda: None, 10)
    reader = Reader(memory, "reader", 4, got)
    reader.ask()
    reader.ask()
    assert memory.depleted == 1
    memory.give_back(10)
    assert (got, memory.used) == (["reader"], 4)


def test_a_reader_that_left_gets_nothing() -> None:
    memory, got = RequestMemory(10), []
    assert memory.take(lambda: None, 10)
    gone, stays = Reader(memory, "gone", 4, got), Reader(memory, "stays", 4, got)
    gone.ask()
    stays.ask()
    memory.forget(gone.ask)
    memory.give_back(10)
    assert (got, memory.used) == (["stays"], 4)
