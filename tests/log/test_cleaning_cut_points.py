"""Every place where a kill or a power cut can end a cleaning: the log opens with the old or the new of each segment, and nothing else.

And every place where the disk may refuse a call once: the broker goes on, perhaps cleans again, and is killed later.

The story: a compacted log of several segments with tombstones, two idempotent producers, an aborted and a committed transaction, all of
it flushed. A cleaning is then ended in front of each call to the disk, and what is left is opened.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace

import pytest

from barnabas.log.append_checks import AppendOrigin
from barnabas.log.log_cleaner import RETRY_MS
from barnabas.records.control import build_end_transaction_marker
from barnabas.simulation.disk import MUTATIONS, SimDisk
from tests.log.compacted import DIRECTORY, KEY, Compacted, latest_of_each_key

ROUNDS = 6
"""Appends that make a segment each. A longer story has more segments, and no other kind of change to the disk."""
CUT_SEEDS = 2
ALL_CUT_SEEDS = 6
LONG_ROUNDS = 14
"""In `make long`."""


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Story:
    compacted: Compacted
    before: list[tuple[int, str, str | None]]
    aborted_offset: int
    last_sequence: int

    @property
    def disk(self) -> SimDisk:
        return self.compacted.disk


def tell(seed: int, rounds: int = ROUNDS) -> Story:
    compacted = Compacted(SimDisk(seed), delete_retention_ms=10**9)
    for i in range(rounds):
        compacted.put((f"k{i % 3}", f"{i:02d}"), (f"only-{i}", None if i % 3 == 2 else "x"))
        compacted.put((f"k{i % 3}", f"{i:02d} again"), producer_id=7, sequence=i)
        if i == rounds // 2:
            aborted_offset = compacted.log.log_end_offset
            compacted.put(("k0", "aborted"), producer_id=9, transactional=True)
            compacted.log.append_as_leader(
                build_end_transaction_marker(
                    commit=False, coordinator_epoch=0, producer_id=9, producer_epoch=0, timestamp=compacted.clock()
                ),
                0,
                origin=AppendOrigin.COORDINATOR,
            )
    compacted.log.roll()
    compacted.log.flush()
    # The data directory itself, which its manager would have synced.
    compacted.disk.sync_dir("/")
    compacted.committed()
    before = [record for record in compacted.pairs() if record[0] != aborted_offset]
    return Story(compacted, before, aborted_offset, rounds - 1)


def clean_until(story: Story, number: int, *, must_clean: bool = True) -> bool:
    """Cleans until in front of the given change to the disk; False when there are fewer."""
    count = 0

    def on_call(call: str, _path: str) -> None:
        nonlocal count
        if call in MUTATIONS:
            count += 1
            if count == number:
                raise Killed

    story.disk.on_call = on_call
    try:
        story.compacted.cleaner.poll()
    except Killed:
        return True
    finally:
        story.disk.on_call = None
    assert story.compacted.cleaner.stats.cleanings == 1 or not must_clean
    return False


def clean_with_refusal(story: Story, number: int) -> bool:
    """Cleans with the given change to the disk refused, and again when the cleaner would; False when there are fewer changes."""
    count = 0

    def on_call(call: str, path: str) -> OSError | None:
        nonlocal count
        count += call in MUTATIONS
        return OSError(errno.EIO, "refused", path) if call in MUTATIONS and count == number else None

    story.disk.on_call = on_call
    story.compacted.cleaner.poll()
    story.disk.on_call = None
    was_refused = count >= number
    # Whatever became of it, readers are not told less, or anything else, than before.
    left = [record for record in story.compacted.pairs() if record[0] != story.aborted_offset]
    assert set(latest_of_each_key(story.before)) <= set(left) <= set(story.before), number
    story.compacted.clock.ms += RETRY_MS
    story.compacted.cleaner.poll()
    return was_refused


def check(story: Story, where: str) -> None:
    """Opens what is left, and goes on with it."""
    before = story.before
    opened = Compacted(story.disk, clock=story.compacted.clock, delete_retention_ms=10**9)
    log = opened.log
    left = [record for record in opened.pairs() if record[0] != story.aborted_offset]
    assert set(latest_of_each_key(before)) <= set(left) <= set(before), where
    assert left == sorted(left), where
    assert log.log_end_offset == story.compacted.log.log_end_offset, where
    assert log.recovered.bytes_cut == 0, where
    bases = [segment.base_offset for segment in log.segments]
    assert bases == sorted(set(bases)), where
    ends = [header.next_offset for segment in log.segments for _, header in segment.headers()]
    assert ends == sorted(set(ends)), where
    assert not [path for path in story.disk.paths() if path.endswith((".cleaned", ".swap", ".deleted"))], where
    # A read_committed reader is still told of the transaction, if its record is there.
    if story.aborted_offset in [r.offset for r in opened.records()]:
        assert [entry.first_offset for entry in log.aborted_transactions(0, 1000)] == [story.aborted_offset], where
    producers = {producer.producer_id: producer for producer in log.producers()}
    assert producers[7].last_sequence == story.last_sequence, where
    assert set(producers) == {7, 9}, where
    # It goes on: appends, and a cleaning that now ends.
    opened.put(("k9", "later"), producer_id=7, sequence=story.last_sequence + 1)
    opened.clean()
    expected = latest_of_each_key([*before, (log.log_end_offset - 1, "k9", "later")])
    assert opened.pairs() == expected, where
    again = opened.reopened(clean=True)
    assert again.pairs() == expected, where
    assert again.cleaner.cleaned_to(KEY) == again.log.log_end_offset, where


def test_the_story_has_something_to_lose() -> None:
    story = tell(0)
    assert story.compacted.log.segment_count > 6
    assert clean_until(story, 0) is False
    assert story.compacted.pairs() == latest_of_each_key(story.before)
    assert story.disk.exists(f"{DIRECTORY}/{0:020d}.log")
    check(story, "no cut")


@pytest.mark.slow
def test_a_kill_in_front_of_each_change() -> None:
    number = 0
    is_ended = True
    while is_ended:
        number += 1
        story = tell(number)
        is_ended = clean_until(story, number)
        story.disk.kill()
        check(story, f"kill in front of change {number}")
    assert number > 100


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [*range(CUT_SEEDS), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(CUT_SEEDS, ALL_CUT_SEEDS))],
)
def test_a_power_cut_in_front_of_each_change(seed: int) -> None:
    number = 0
    is_ended = True
    while is_ended:
        number += 1
        story = tell(seed * 10_000 + number, ROUNDS if seed < CUT_SEEDS else LONG_ROUNDS)
        is_ended = clean_until(story, number)
        story.disk.crash()
        check(story, f"power cut in front of change {number} with seed {seed}")
    assert number > 100


@pytest.mark.slow
@pytest.mark.parametrize("end", ["kill", "crash"])
def test_a_refusal_of_each_change_and_a_later_end(end: str) -> None:
    number = 0
    was_refused = True
    unfinished = 0
    while was_refused:
        number += 1
        story = tell(number)
        was_refused = clean_with_refusal(story, number)
        unfinished += bool(story.compacted.cleaner.uncleanable)
        getattr(story.disk, end)()
        check(story, f"{end} after change {number} was refused")
    assert number > 100
    assert unfinished > 20, "exchanges that only the opening ended"


@pytest.mark.slow
def test_a_refusal_of_each_change_and_a_kill_in_the_next_cleaning() -> None:
    """An exchange that is half done is not touched: the next cleaning's files would undo it."""
    number = 0
    was_refused = True
    while was_refused:
        number += 1
        story = tell(number)
        was_refused = clean_with_refusal(story, number)
        story.compacted.put(("k0", "later"))
        story.compacted.log.roll()
        story.compacted.log.flush()
        story.before.append((story.compacted.log.log_end_offset - 1, "k0", "later"))
        story.compacted.clock.ms += RETRY_MS
        clean_until(story, number % 40, must_clean=False)
        story.disk.kill()
        check(story, f"kill after change {number} was refused")


@pytest.mark.slow
def test_a_refusal_of_each_change_while_segments_are_merged() -> None:
    """As above, with segments, and producers' snapshots of theirs, that go without a successor; and cleaning goes on."""
    number = 0
    was_refused = True
    while was_refused:
        number += 1
        story = tell(number)
        compacted = story.compacted
        compacted.log.reconfigure(replace(compacted.log.config, segment_bytes=10_000))
        was_refused = clean_with_refusal(story, number)
        assert compacted.cleaner.stats.cleanings or compacted.cleaner.uncleanable, number
        assert not compacted.cleaner.is_cleaning(KEY)
        story.disk.kill()
        check(story, f"kill after change {number} was refused")
    assert compacted.log.segment_count == 2
    assert number > 20
