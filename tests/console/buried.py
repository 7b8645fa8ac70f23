"""Dead letters for tests of the console."""

from __future__ import annotations

from barnabas.retries.headers import FailureHeaders, write_failure
from tests.console.writing import Given, create, write


def bury(bootstrap: str, topic: str, source: str, count: int, partitions: int = 1) -> None:
    """Create a source topic and a topic of its dead letters: timeouts at even offsets, missing cards at odd ones."""
    create(bootstrap, source, partitions)
    create(bootstrap, topic, partitions)
    letters = []
    for number in range(count):
        error = ("TimeoutError", "shop.NoCard")[number % 2]
        failure = FailureHeaders(source, number % partitions, number, error=error, message="secret", attempts=4)
        letters.append(
            Given(b"order %d" % number, b"k%d" % number, number % partitions, headers=write_failure(failure))
        )
    write(bootstrap, topic, letters)
