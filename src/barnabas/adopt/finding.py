"""A finding of `barnabas adopt check`: a place, what is there, what it means for a change to barnabas, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

__all__ = ["Finding", "Verdict", "blocks", "differs", "merged", "works"]


class Verdict(Enum):
    """The meaning of a finding, the worst first.

    Attributes:
        BLOCKS: do not begin: something would be lost, or the node would not start.
        DIFFERS: barnabas does this in another way than Apache Kafka, or not at all, and the change works.
        WORKS: as with Apache Kafka.
    """

    BLOCKS = "blocks"
    DIFFERS = "differs"
    WORKS = "works"


class Finding(NamedTuple):
    """One finding.

    Attributes:
        where: places such as `cluster`, `broker 3`, `topic orders`, `server.properties, line 7`.
        remedy: what to do, empty if nothing is to be done.
    """

    where: tuple[str, ...]
    what: str
    verdict: Verdict
    remedy: str = ""


def works(where: str, what: str) -> Finding:
    """Return a finding that asks for nothing."""
    return Finding((where,), what, Verdict.WORKS)


def differs(where: str, what: str, remedy: str) -> Finding:
    """Return a finding about something that is otherwise after the change."""
    return Finding((where,), what, Verdict.DIFFERS, remedy)


def blocks(where: str, what: str, remedy: str) -> Finding:
    """Return a finding that has to be mended before the change."""
    return Finding((where,), what, Verdict.BLOCKS, remedy)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with the worst first; those that say the same of several places become one."""
    places: dict[tuple[str, Verdict, str], dict[str, None]] = {}
    for each in findings:
        places.setdefault((each.what, each.verdict, each.remedy), {}).update(dict.fromkeys(each.where))
    order = list(Verdict)
    found = [Finding(tuple(where), what, verdict, remedy) for (what, verdict, remedy), where in places.items()]
    return sorted(found, key=lambda finding: order.index(finding.verdict))
