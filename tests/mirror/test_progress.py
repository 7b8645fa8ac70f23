"""The position of a partition, and the notes that say so."""

from __future__ import annotations

from barnabas.mirror.notes import RUNS_PER_NOTE, Note
from barnabas.mirror.progress import Progress
from barnabas.mirror.runs import Run


def copy(progress: Progress, count: int) -> list[Note]:
    """Copy so many records, each in a transaction of its own; return the notes as a compacted topic keeps them."""
    notes = {progress.note.first: progress.note}
    for _ in range(count):
        runs = [Run(progress.next, progress.runs.end + 1, 1)]
        note = progress.note_with(progress.next + 1, runs)
        progress.take(note, runs, copied=1, dropped=0)
        notes[note.first] = note
    return list(notes.values())


def test_a_trickle_of_records_does_not_leave_a_note_for_each() -> None:
    progress = Progress([Note(100, 100, "a", "b")])
    notes = copy(progress, 3 * RUNS_PER_NOTE)
    assert [each.first for each in notes] == [100, 100 + RUNS_PER_NOTE, 100 + 2 * RUNS_PER_NOTE]
    again = Progress(notes)
    assert (again.next, len(again.runs), again.runs.end) == (progress.next, len(progress.runs), progress.runs.end)
    assert again.note == progress.note


def test_a_group_beyond_the_copy_is_at_its_end() -> None:
    progress = Progress([Note(0, 10, "a", "b", (Run(0, 0, 10),))])
    assert [progress.translate(each) for each in (0, 9, 10, 99)] == [0, 9, 10, 10]


def test_what_is_passed_over_is_not_lost_between_notes() -> None:
    progress = Progress([Note(0, 0, "a", "b")])
    copy(progress, RUNS_PER_NOTE)
    progress.pass_over(500)
    note = progress.note_with(501, [Run(500, 900, 1)])
    assert (note.first, note.next, note.runs) == (500, 501, (Run(500, 900, 1),))
    progress.pass_over(7)
    assert progress.next == 500


def test_only_notes_of_deleted_records_are_forgotten() -> None:
    progress = Progress([Note(0, 0, "a", "b")])
    copy(progress, 2 * RUNS_PER_NOTE + 1)
    end_of_first = 2 * RUNS_PER_NOTE
    assert progress.forgettable(end_of_first - 1) == []
    assert progress.forgettable(end_of_first) == [0]
    assert progress.forgettable(end_of_first) == []
    assert progress.forgettable(10**9) == [RUNS_PER_NOTE]
