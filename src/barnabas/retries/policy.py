"""The treatment of a record whose processing fails: how often it is tried again, after which delays, and where it ends.

Each retry has a topic of its own, so that the records of one partition are due in the order in which they stand there. The names follow
from the dead-letter topic's: `orders.dlq` has `orders.retry.1`, `orders.retry.2` …, and `orders-dlq` has `orders-retry-1` ….
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.words.durations import parse_duration_ms

_SUFFIXES = (".dlq", "-dlq")
LONGEST_NAME = 249
"""Kafka's limit for the name of a topic."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often a failed record is tried again, after which delays, and where it ends.

    Attributes:
        dead_letter: the dead-letter topic.
        delays: how long to wait before each retry, such as "10s"; the last one also counts for the retries after it.
        retries: how often a record is tried again after its first failure; None is one retry for each delay.
        not_retried: exceptions that a retry cannot mend: the record goes to the dead-letter topic directly.

    Raises:
        ValueError: the values contradict each other, or a delay is not a duration.
    """

    dead_letter: str
    delays: tuple[str, ...] = ("10s", "1m", "10m")
    retries: int | None = None
    not_retried: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.delays, str):
            raise ValueError(f'delays is a tuple: write delays=("{self.delays}",)')
        if not self.dead_letter:
            raise ValueError("dead_letter is empty: name a topic, such as orders.dlq")
        for delay in self.delays:
            if parse_duration_ms(delay) < 0:
                raise ValueError(f"a delay must not be negative, not {delay}")
        if self.total_retries < 0:
            raise ValueError(f"retries must not be negative, not {self.total_retries}")
        if self.total_retries and not self.delays:
            raise ValueError('delays is empty: write a delay for the retries, such as delays=("10s",)')
        if len(self.delays) > self.total_retries > 0:
            raise ValueError(f"there are {len(self.delays)} delays for {self.total_retries} retries: leave some out")
        for topic in (self.dead_letter, *self.retry_topics):
            if len(topic) > LONGEST_NAME:
                raise ValueError(f"the name of topic {topic} is longer than {LONGEST_NAME} characters")

    @property
    def total_retries(self) -> int:
        """How often a record is tried again after its first failure."""
        return len(self.delays) if self.retries is None else self.retries

    @property
    def retry_topics(self) -> tuple[str, ...]:
        """The topic of each retry, the first one first."""
        base, separator = self.dead_letter, "."
        for suffix in _SUFFIXES:
            if self.dead_letter.endswith(suffix) and self.dead_letter != suffix:
                base, separator = self.dead_letter.removesuffix(suffix), suffix[0]
        numbers = range(1, self.total_retries + 1)
        return tuple(f"{base}{separator}retry{separator}{number}" for number in numbers)

    def delay_ms(self, retry: int) -> int:
        """Return how long to wait before a retry; the first is 1."""
        return parse_duration_ms(self.delays[min(retry, len(self.delays)) - 1])

    def retry_of(self, topic: str) -> int:
        """Return the number of the retry that reads a topic: 1 is the first, 0 means that the policy has no such retry topic."""
        topics = self.retry_topics
        return topics.index(topic) + 1 if topic in topics else 0
