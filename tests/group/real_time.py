"""Golden scripts played in real time against a running broker: all at once, as they mostly wait, and the odd one again, alone.

On a busy machine an answer can come when its script has gone on. And Apache Kafka's assignors go through the members in the order of
their ids' hashes: where the broker makes an id up, which of two members gives up a partition is the toss of a coin. Neither happens each
time to a script that has the broker to itself, while a broker that answers otherwise does so each time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.group.script import ScriptRunner
from tests.group.scripts_of import SCRIPTS

ATTEMPTS_ALONE = 24
"""A coin falls on the same side 25 times in one run of thirty million."""


def assert_answers(
    names: tuple[str, ...],
    under_test: BarnabasProcess | KafkaProcess,
    runner: Callable[[tuple[str, int], str], ScriptRunner],
    answers: Callable[[str], object],
) -> None:
    """The broker answers each script as it is written.

    Args:
        answers: what of a trace is compared.
    """
    host, _, port = under_test.bootstrap_servers.partition(":")

    def play(name: str, attempt: int = 0) -> object:
        prefix = f"{name.replace('/', '-')}-{attempt}-"
        try:
            return answers(runner((host, int(port)), prefix).run((SCRIPTS / f"{name}.txt").read_text()))
        except Exception as error:  # An answer that did not come in time, most of all.
            return error

    with ThreadPoolExecutor(len(names)) as threads:
        played = list(threads.map(play, names))
    for name, found in zip(names, played, strict=True):
        written = answers((SCRIPTS / f"{name}.txt").read_text())
        for attempt in range(ATTEMPTS_ALONE):
            if found == written:
                break
            found = play(name, attempt + 1)
        if isinstance(found, Exception):
            raise AssertionError(f"{name} was not played to its end") from found
        assert found == written, f"{name} was answered otherwise"
