"""The warning about topics that one broker stops although they have several replicas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.cli.wording import listed
from barnabas.client.topics import MIN_ISR

__all__ = ["InSync", "warning_of_few"]


class InSync(NamedTuple):
    """The replicas of a topic's partitions, the fewest, and how many of them must be in sync for `acks=all`.

    Attributes:
        min_isr: the setting's text; None counts as 1.
    """

    topic: str
    replicas: int
    min_isr: str | None


def warning_of_few(topics: Iterable[InSync]) -> str | None:
    """Return a warning if topics will reject `acks=all` while one of their brokers is down, although they have several replicas."""
    names = [each.topic for each in topics if 1 < each.replicas <= int(each.min_isr or 1)]
    if not names:
        return None
    which = f"topic {names[0]} has" if len(names) == 1 else f"topics {listed(names)} have"
    return f"warning: {which} no more replicas than {MIN_ISR}: acks=all is rejected while one of the brokers is down"
