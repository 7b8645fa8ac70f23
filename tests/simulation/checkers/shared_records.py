"""A share group finishes each record once and for all, and has one member hold it at any time.

- A record that a member knows to be accepted or rejected is not delivered again.
- While a member holds a record, its leader does not deliver it to anybody. A new leader may: locks are in the leader's memory.
- A member can acknowledge what it holds.
- No record is delivered more often than the limit says.
- In the end each record is finished: a member has asked for that, or it was delivered as often as the limit says. A fetch whose answer was
  lost may have been a delivery.

Where records were deleted, nothing is promised of those before the log start that somebody has asked for.
"""

from __future__ import annotations

from tests.simulation.history import History, Partition
from tests.simulation.share_history import Hold, Leader, Record


def check(history: History) -> list[str]:
    shared = history.shared
    found = [*shared.refused, *shared.left, *_overlaps(shared.holds)]
    for hold in shared.holds:
        where = f"{hold.partition.topic}-{hold.partition.index} offset {hold.offset}"
        finished = shared.finished.get(Record(hold.partition, hold.offset))
        if finished is not None and hold.leader is not None and hold.asked_at >= finished:
            found.append(f"{where} was delivered to {hold.member} at {hold.since:.6f}, and finished at {finished:.6f}")
        if hold.count > shared.delivery_limit:
            found.append(f"{where} was delivered for the {hold.count}th time")
    for partition in shared.drained:
        where = f"{partition.topic}-{partition.index}"
        found.extend(f"{where} offset {offset} was never finished" for offset in unfinished(history, partition))
    return found


def _overlaps(holds: list[Hold]) -> list[str]:
    found = []
    latest: dict[tuple[Record, Leader], Hold] = {}
    for hold in holds:
        if hold.leader is None:
            continue
        key = Record(hold.partition, hold.offset), hold.leader
        former = latest.get(key)
        if former is not None and hold.since < min(former.until, former.is_held_at):
            found.append(
                f"{hold.partition.topic}-{hold.partition.index} offset {hold.offset} was delivered to {hold.member}"
                f" at {hold.since:.6f}, and {former.member} held it until {min(former.until, former.is_held_at):.6f}"
            )
        latest[key] = hold
    return found


def unfinished(history: History, partition: Partition) -> list[int]:
    """Return the offsets of a partition's log whose records nobody has finished."""
    shared = history.shared
    counts: dict[int, int] = {}
    for hold in shared.holds:
        if hold.partition == partition:
            counts[hold.offset] = max(hold.count, counts.get(hold.offset, 0))
    start = history.trims_asked.get(partition, 0)
    return [
        offset
        for offset, _ in history.final_logs[partition]
        if offset >= start
        and Record(partition, offset) not in shared.asked_to_finish
        and counts.get(offset, 0) + shared.lost_answers[partition] < shared.delivery_limit
    ]
