"""Golden scripts played in real time against running brokers: all at once, as they mostly wait, and then the odd ones again.

On a busy machine an answer can come when its script has gone on. And Apache Kafka's assignors go through the members in the order of
their ids' hashes: where the broker makes an id up, which of two members gives up a partition is the toss of a coin. Neither happens each
time, while a broker that answers otherwise does so each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.group.script import ScriptRunner
from tests.group.scripts_of import SCRIPTS

ATTEMPTS = 25
"""A coin falls on the same side 25 times in one run of thirty million."""

Answers = Callable[[str], dict[str, list[str]]]
"""What of a trace is compared."""


def assert_answers(
    names: tuple[str, ...],
    brokers: Sequence[BarnabasProcess | KafkaProcess],
    runner: Callable[[tuple[str, int], str], ScriptRunner],
    answers: Answers,
) -> None:
    """Each broker answers each script as it is written."""
    with ThreadPoolExecutor(len(brokers)) as threads:
        found = list(threads.map(lambda under_test: _play(names, under_test, runner, answers), brokers))
    for under_test, played in zip(brokers, found, strict=True):
        for name in names:
            if isinstance(error := played[name], Exception):
                raise AssertionError(f"{name} was not played to its end on {under_test.name}") from error
            assert played[name] == answers(_script(name)), f"{under_test.name} answers {name} otherwise"


def _play(
    names: tuple[str, ...],
    under_test: BarnabasProcess | KafkaProcess,
    runner: Callable[[tuple[str, int], str], ScriptRunner],
    answers: Answers,
) -> dict[str, dict[str, list[str]] | Exception]:
    """Return what the broker answered to each script, or the error that ended it."""
    host, _, port = under_test.bootstrap_servers.partition(":")

    def play(name: str, attempt: int) -> dict[str, list[str]] | Exception:
        prefix = f"{name.replace('/', '-')}-{attempt}-"
        try:
            return answers(runner((host, int(port)), prefix).run(_script(name)))
        except Exception as error:  # An answer that did not come in time, most of all.
            return error

    found: dict[str, dict[str, list[str]] | Exception] = {}
    odd: Sequence[str] = names
    with ThreadPoolExecutor(len(names)) as threads:
        for attempt in range(ATTEMPTS):
            found.update(zip(odd, threads.map(play, odd, [attempt] * len(odd)), strict=True))
            odd = [name for name in odd if found[name] != answers(_script(name))]
            if not odd:
                break
    return found


def _script(name: str) -> str:
    return (SCRIPTS / f"{name}.txt").read_text()
