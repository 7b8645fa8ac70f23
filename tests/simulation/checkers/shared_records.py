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

from tests.simulation.history import History
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
    return [*found, *_skipped(history)]


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


def _skipped(history: History) -> list[str]:
    """Return the records of the logs that nobody has finished."""
    shared = history.shared
    counts: dict[Record, int] = {}
    for hold in shared.holds:
        record = Record(hold.partition, hold.offset)
        counts[record] = max(hold.count, counts.get(record, 0))
    found = []
    for partition in shared.drained:
        for offset, _ in history.final_logs[partition]:
            record = Record(partition, offset)
            most = counts.get(record, 0) + shared.lost_answers[partition]
            is_finished = record in shared.asked_to_finish or most >= shared.delivery_limit
            if not is_finished and offset >= history.trims_asked.get(partition, 0):
                found.append(f"{partition.topic}-{partition.index} offset {offset} was never finished")
    return found
