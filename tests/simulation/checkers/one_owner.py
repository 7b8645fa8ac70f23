"""A partition has one owner in a group at any time: the former one has given it up, or its session is over.

Hence a former owner cannot commit any more, and a new owner finds what the former ones have been promised.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from tests.simulation.history import History, Lease, Owned


def check(history: History) -> list[str]:
    return [*_overlaps(history.leases), *_late_commits(history), *_steps_back(history)]


def _overlaps(leases: list[Lease]) -> list[str]:
    found = []
    latest: dict[tuple[str, Owned], Lease] = {}
    for lease in sorted(leases, key=lambda each: each.since):
        key = lease.group, lease.partition
        former = latest.get(key)
        if former is not None and former.member != lease.member and lease.since < former.until:
            found.append(
                f"{lease.member} owned {_named(lease.partition)} from {lease.since:.6f} on,"
                f" {former.member} until {former.until:.6f}"
            )
        if former is None or lease.until > former.until:
            latest[key] = lease
    return found


def _late_commits(history: History) -> list[str]:
    return [
        f"{member} committed for {_named(partition)} at epoch {epoch}, when it had another owner"
        for member, partition, epoch, code in history.late_commits
        if code == ErrorCode.NONE
    ]


def _steps_back(history: History) -> list[str]:
    return [
        f"{member} found {found} committed for {_named(partition)}, where {at_least} was promised"
        for _, member, partition, at_least, found in history.owners_reads
        if found < at_least
    ]


def _named(partition: Owned) -> str:
    topic, index = partition
    return f"{topic.hex() if isinstance(topic, bytes) else topic}-{index}"
