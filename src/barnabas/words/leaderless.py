"""Why a partition has no leader, and what helps: for the controller's log and for people who ask a cluster.

The controller elects one of the in-sync replicas. A partition without in-sync replicas gets one of its eligible leader replicas, and a
partition without those gets its last known leader, or another one with a longer log (KIP-966). A partition therefore waits for the
brokers of its first list that is not empty, and one whose last known leader is in service waits for its other replicas, for a while. A
last known leader that has come back with an empty disk is in no list.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

ACCEPT_LOSS = "`barnabas cluster accept-loss` elects another replica, which may lose records"


class Leaderless(NamedTuple):
    """The sentence for people about one partition without a leader."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}"


def why_leaderless(
    replicas: Sequence[int],
    offline: Collection[int],
    *,
    isr: Sequence[int],
    elr: Sequence[int] = (),
    last_known: Sequence[int] = (),
    serving: Collection[int] = (),
) -> Leaderless:
    """Explain why a partition has no leader.

    Args:
        replicas: the brokers that have a replica.
        offline: those of them that cannot lead.
        isr, elr, last_known: the in-sync replicas, the eligible leader replicas and the last known leader.
        serving: the brokers that serve, as far as they are known; a replica that is offline there has lost its log directory.
    """
    waited_for: Sequence[int] = ()
    for kind, candidates in (
        ("in-sync replica", isr),
        ("eligible leader replica", elr),
        ("last known leader", last_known),
    ):
        if candidates:
            waited_for = candidates
            reason = f"{_counted(kind, candidates)} {_be(candidates)} offline"
            break
    else:
        reason = "no replica is known to have all its records"
    if any(replica not in offline for replica in waited_for):
        away = [replica for replica in replicas if replica in offline]
        if isr or elr or not away:
            return Leaderless("its election is not over", "ask again in a few seconds")
        return Leaderless(
            f"{_counted('replica', away)} {_be(away)} offline, and may have more records than the last known leader {waited_for[0]}",
            f"start {_counted('broker', away)}, or wait; {ACCEPT_LOSS}",
        )
    others = [replica for replica in replicas if replica not in offline]
    failed = [replica for replica in waited_for if replica in serving]
    down = [replica for replica in waited_for if replica not in serving]
    if failed and not down:
        # The disk failed, and the broker goes on with its other directories.
        where = "is on an offline disk" if len(failed) == 1 else "are on offline disks"
        reason = reason.replace(f"{_be(failed)} offline", where)
    remedies = [f"start {_counted('broker', down)}"] if down else []
    if failed:
        disk, it = ("disk", "it") if len(failed) == 1 else ("disks", "them")
        remedies.append(f"mend the {disk} of {_counted('broker', failed)} and restart {it}")
    if others:
        reason += f", and {_counted('replica', others)} may lack records"
        remedies.append(ACCEPT_LOSS)
    elif not waited_for:
        remedies.append(f"start {_counted('broker', replicas)}")
    return Leaderless(reason, ", or ".join(remedies))


def _counted(noun: str, ids: Sequence[int]) -> str:
    words = [str(each) for each in ids]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"{noun}{'s' if len(words) > 1 else ''} {listed}"


def _be(ids: Sequence[int]) -> str:
    return "are" if len(ids) > 1 else "is"
