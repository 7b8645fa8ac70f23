"""Whether a group keeps up, judged as Burrow does: from a window of samples, without a threshold for the lag.

The rules for a partition, of which the first that fits counts:

1. The last lag is 0: OK.
2. The offset is the same in each sample, and the group has no members: STOP, it does not run.
3. The lag is 0 in a sample: OK.
4. The offset is smaller than in the sample before: REWIND.
5. The offset is the same in each sample: STALL, it runs and does not move on.
6. The lag never becomes smaller from one sample to the next: WARN, it moves on and does not catch up.
7. Otherwise: OK.

A group gets the worst verdict of its partitions.

Burrow sees each commit, and says STOP when commits stay away. Samples do not show a commit that repeats an offset, so here
the group's members decide between STOP and STALL. A window must be longer than the interval in which consumers commit, five
seconds by default; otherwise a group that moves on looks as if it stood still.

Source: Burrow, wiki page "Consumer Lag Evaluation Rules", and `evaluator/caching.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple


class Verdict(IntEnum):
    """What is said of a partition or a group; the larger, the worse."""

    OK = 0
    WARN = 1
    STALL = 2
    STOP = 3
    REWIND = 4


class Sample(NamedTuple):
    """What a group committed in a partition at a moment, and the records after it."""

    offset: int
    lag: int


def judge(samples: Sequence[Sample], *, has_members: bool) -> Verdict:
    """Return the verdict about a partition.

    Args:
        samples: the oldest first; one sample shows no movement, so it gives OK.
        has_members: whether the group has members.
    """
    if len(samples) < 2 or samples[-1].lag == 0:
        return Verdict.OK
    stands_still = all(before.offset == after.offset for before, after in pairwise(samples))
    if stands_still and not has_members:
        return Verdict.STOP
    if any(each.lag == 0 for each in samples):
        return Verdict.OK
    if any(after.offset < before.offset for before, after in pairwise(samples)):
        return Verdict.REWIND
    if stands_still:
        return Verdict.STALL
    return Verdict.WARN if all(after.lag >= before.lag for before, after in pairwise(samples)) else Verdict.OK
