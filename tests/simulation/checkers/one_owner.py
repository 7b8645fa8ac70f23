"""A partition has one owner in a group at any time: the former one has given it up, or its session is over."""

from __future__ import annotations

from tests.simulation.history import History, Lease


def check(history: History) -> list[str]:
    found = []
    latest: dict[tuple[bytes, int], Lease] = {}
    for lease in sorted(history.leases, key=lambda each: each.since):
        former = latest.get(lease.partition)
        if former is not None and former.member != lease.member and lease.since < former.until:
            topic_id, index = lease.partition
            found.append(
                f"{lease.member} owned {topic_id.hex()}-{index} from {lease.since:.6f} on,"
                f" {former.member} until {former.until:.6f}"
            )
        if former is None or lease.until > former.until:
            latest[lease.partition] = lease
    return found
