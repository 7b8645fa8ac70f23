"""Repeats a request until it succeeds, fails for good, or a deadline passes.

`Cluster.retry` serves a person at a terminal: it gives up immediately where nothing listens. A job that runs for months
outlasts a broker's restart, so here a broker that cannot be reached is asked again as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import ErrorCode, KafkaError, RetriableError

ResultT = TypeVar("ResultT")

FIRST_ATTEMPT = -4
"""`Cluster.pause` doubles from here: the first pause is a sixteenth of the backoff."""
_UNKNOWN_TOPIC_ATTEMPTS = 6
_UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
# The broker has answered, and is still the right one to ask.
_BUSY = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def is_retriable(error: KafkaError) -> bool:
    """Return whether a retry may help: by the error code, or because the broker could not be reached."""
    return isinstance(error, RetriableError) or error.code.retriable


def insist(cluster: Cluster, ask: Callable[[], ResultT], timeout_ms: int) -> ResultT:
    """Call `ask` until it raises no retriable error; forget leaders and coordinators that may have moved.

    A topic that does not exist is retriable for a broker's first second only: the topic may be new.

    Raises:
        KafkaError: the last error, when the timeout has passed or the error is final.
    """
    deadline = cluster.deadline(timeout_ms)
    attempt = FIRST_ATTEMPT
    unknown_topics = 0
    while True:
        try:
            return ask()
        except KafkaError as error:
            unknown_topics += error.code in _UNKNOWN_TOPIC
            if not is_retriable(error) or unknown_topics >= _UNKNOWN_TOPIC_ATTEMPTS:
                raise
            if not cluster.pause(attempt, deadline):
                raise
            if error.code not in _BUSY:
                cluster.forget()
        attempt += 1
