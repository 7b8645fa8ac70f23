"""When the keys of a listener are read: on time, early, again after a failure; and what a server that is away changes: nothing."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator

import pytest
from joserfc.jwk import ECKey

from barnabas.net.refreshing_keys import EARLY_S, RefreshingKeys, RefreshTimes, WorkerThread
from barnabas.repeated_lines import RepeatedLines
from barnabas.security.sasl.oauth_keys import KeySet
from tests.api.quiet_clock import QuietClock

TIMES = RefreshTimes(refresh_ms=1_000_000, backoff_ms=100, backoff_max_ms=1000)


def document(key_id: str) -> bytes:
    return json.dumps({"keys": [ECKey.generate_key("P-256", {"kid": key_id}).as_dict(private=False)]}).encode()


class Server:
    """A document in virtual time; `at` has the moments at which it was read."""

    def __init__(self, loop: QuietClock) -> None:
        self.loop = loop
        self.answer: bytes | OSError = document("first")
        self.at: list[float] = []
        self.kept = RefreshingKeys(KeySet(), "https://h/keys", self.read, TIMES, self.at_once)

    def read(self) -> bytes:
        self.at.append(round(self.loop.time(), 3))
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer

    @staticmethod
    def at_once(loop: asyncio.AbstractEventLoop, work: object) -> asyncio.Future[None]:
        return loop.run_in_executor(None, work)  # type: ignore[arg-type]

    def begin(self) -> None:
        self.loop.run_until_complete(self.kept.begin(self.loop, RepeatedLines(self.loop)))

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def server() -> Iterator[Server]:
    loop = QuietClock()
    made = Server(loop)
    yield made
    made.kept.close()
    made.pass_time(0)
    loop.close()


def test_the_document_is_read_on_time(server: Server) -> None:
    server.begin()
    assert server.kept.keys.knows("first")
    server.answer = document("second")
    server.pass_time(999)
    assert server.at == [0]
    server.pass_time(2)
    assert server.at == [0, 1000]
    assert server.kept.keys.knows("second")
    assert not server.kept.keys.knows("first")
    server.kept.close()
    server.pass_time(5000)
    assert server.at == [0, 1000]


@pytest.mark.parametrize("broken", [OSError("the server answered with HTTP status 503"), b"[]"])
def test_old_keys_stay_while_the_server_is_away(
    server: Server, caplog: pytest.LogCaptureFixture, broken: bytes | OSError
) -> None:
    server.begin()
    server.answer = broken
    server.pass_time(1004.6)
    assert server.at == [0, 1000, 1000.1, 1000.3, 1000.7, 1001.5, 1002.5, 1003.5, 1004.5]
    assert server.kept.keys.knows("first")
    why = str(broken) if isinstance(broken, OSError) else "the document is not a JSON document with keys (a JWK set)"
    lines = [f"The keys of OAUTHBEARER stay as they were: https://h/keys: {why}"]
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING] == lines
    caplog.set_level(logging.INFO)
    server.answer = document("second")
    server.pass_time(1.1)
    assert server.kept.keys.knows("second")
    assert "The keys of OAUTHBEARER are read again from https://h/keys" in caplog.text
    server.pass_time(999)
    assert server.at[-1] == 1005.5


def test_an_unknown_key_is_asked_for_once_a_minute(server: Server) -> None:
    server.begin()
    server.pass_time(10)
    for _ in range(3):
        server.kept.ask_for("second")
        server.pass_time(10)
    assert server.at == [0, 10]
    server.pass_time(31)
    server.answer = document("second")
    server.kept.ask_for("second")
    server.pass_time(0.1)
    assert server.at == [0, 10, 71]
    assert server.kept.keys.knows("second")
    # It was found: when it is unknown again, the document is read without the wait of a minute.
    server.answer = document("third")
    server.pass_time(EARLY_S)
    server.kept.ask_for("third")
    server.pass_time(0.1)
    server.kept.ask_for("second")
    server.pass_time(EARLY_S)
    assert server.at == [0, 10, 71, 76.1, 81.1]


def test_a_stranger_with_many_keys_causes_few_requests(server: Server) -> None:
    server.begin()
    for index in range(195):
        server.kept.ask_for(f"key-{index}")
        server.pass_time(0.1)
    assert server.at == [0, 0, 5, 10, 15]
    server.kept.ask_for("k" * 1001)
    server.pass_time(10)
    assert server.at == [0, 0, 5, 10, 15, 20]


def test_an_early_request_that_fails_is_repeated_like_any_other(server: Server) -> None:
    server.begin()
    server.answer = OSError("away")
    server.kept.ask_for("second")
    server.pass_time(0.05)
    server.answer = document("second")
    server.pass_time(0.1)
    assert server.at == [0, 0, 0.1]
    assert server.kept.keys.knows("second")


@pytest.mark.parametrize("broken", [OSError("away"), b"{}"])
def test_a_first_document_that_cannot_be_read_is_an_error(server: Server, broken: bytes | OSError) -> None:
    server.answer = broken
    with pytest.raises((OSError, ValueError), match=r"^away$|^the document is not a JSON document with keys"):
        server.begin()
    server.kept.ask_for("second")
    server.pass_time(2000)
    assert server.at == [0]


def test_a_worker_that_does_not_end_has_a_deadline(server: Server) -> None:
    kept = RefreshingKeys(KeySet(), "https://h/keys", server.read, TIMES, lambda loop, work: loop.create_future())
    with pytest.raises(OSError, match=r"^there is no answer after 20 s$"):
        server.loop.run_until_complete(kept.begin(server.loop, RepeatedLines(server.loop)))
    assert server.loop.time() == 20


def test_work_is_done_in_a_thread_one_at_a_time() -> None:
    worker, may_end, names = WorkerThread(), threading.Event(), []

    def work() -> None:
        names.append(threading.current_thread().name)
        may_end.wait()
        raise ValueError("no keys")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        done = worker(loop, work)
        assert repr(worker) == "<WorkerThread busy>"
        with pytest.raises(OSError, match="has not ended"):
            worker(loop, work)
        may_end.set()
        with pytest.raises(ValueError, match="no keys"):
            await done

    asyncio.run(run())
    assert names == ["jwks"]


def test_a_thread_outlives_its_loop() -> None:
    worker, may_end = WorkerThread(), threading.Event()

    async def begin() -> None:
        worker(asyncio.get_running_loop(), lambda: bool(may_end.wait()) and None)

    asyncio.run(begin())
    may_end.set()
    (thread,) = [each for each in threading.enumerate() if each.name == "jwks"] or [None]
    if thread is not None:
        thread.join()
    assert repr(worker) == "<WorkerThread idle>"
