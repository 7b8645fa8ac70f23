"""How many logins are under way at once, of all and of one address, and how long each may take."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.net.pending_logins import LOGIN_SECONDS, PendingLogins


class Timer:
    def __init__(self, callback: Any, argument: Any) -> None:
        self.callback, self.argument, self.is_cancelled = callback, argument, False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """Keeps the timers; a test lets them ring."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, seconds: float, callback: Any, argument: Any) -> Timer:
        assert seconds == LOGIN_SECONDS
        self.timers.append(Timer(callback, argument))
        return self.timers[-1]


class Connection:
    def __init__(self, peer_host: str) -> None:
        self.peer_host = peer_host
        self.has_begun = False
        self.reason = ""

    def begin_login(self) -> None:
        self.has_begun = True

    def abort(self, reason: str) -> None:
        self.reason = reason


def pending(limit: int) -> tuple[PendingLogins, Loop]:
    loop = Loop()
    timers: Any = loop
    assert isinstance(timers, (Loop, asyncio.AbstractEventLoop))
    return PendingLogins(timers, limit), loop


def test_one_address_has_a_tenth() -> None:
    logins, _ = pending(30)
    crowd = [Connection("1.1.1.1") for _ in range(5)]
    for each in crowd:
        logins.arrive(each)
    other = Connection("2.2.2.2")
    logins.arrive(other)
    assert [each.has_begun for each in crowd] == [True, True, True, False, False]
    assert other.has_begun
    assert repr(logins) == "<PendingLogins under_way=4 waiting=2>"


def test_the_next_one_begins_when_one_has_logged_in() -> None:
    logins, loop = pending(10)
    first, second, third = (Connection("1.1.1.1") for _ in range(3))
    for each in (first, second, third):
        logins.arrive(each)
    assert not second.has_begun
    logins.leave(first)
    logins.leave(first)
    assert second.has_begun
    assert not third.has_begun
    assert [timer.is_cancelled for timer in loop.timers] == [True, False, False]


def test_all_addresses_together_have_the_limit() -> None:
    logins, _ = pending(2)
    crowd = [Connection(f"1.1.1.{host}") for host in range(3)]
    for each in crowd:
        logins.arrive(each)
    assert [each.has_begun for each in crowd] == [True, True, False]
    logins.leave(crowd[0])
    assert crowd[2].has_begun


def test_one_that_waits_may_leave() -> None:
    logins, _ = pending(1)
    first, second, third = (Connection("1.1.1.1") for _ in range(3))
    for each in (first, second, third):
        logins.arrive(each)
    logins.leave(second)
    logins.leave(first)
    assert not second.has_begun
    assert third.has_begun


def test_the_deadline_ends_a_connection() -> None:
    logins, loop = pending(1)
    connection = Connection("1.1.1.1")
    logins.arrive(connection)
    loop.timers[0].callback(loop.timers[0].argument)
    assert connection.reason == "the client did not log in within 10 s"
