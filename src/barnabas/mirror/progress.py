"""How far the copy of one partition is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from barnabas.mirror.notes import RUNS_PER_NOTE, Note
from barnabas.mirror.runs import Run, Runs


class Progress:
    """A partition's position, its runs, and the notes that say so.

    Args:
        notes: of the partition, by their first offset; at least one.

    Attributes:
        next: the source's next offset; control records after the last note may be passed already.
        copied, dropped: how many records of this run were written, and how many the mask left out.
    """

    def __init__(self, notes: Sequence[Note]) -> None:
        self.note = notes[-1]
        self.next = max(each.next for each in notes)
        self.runs = Runs(run for each in notes for run in each.runs)
        self.copied = 0
        self.dropped = 0
        self._closed = [(each.first, each.runs[-1].target + each.runs[-1].length) for each in notes[:-1] if each.runs]

    def __repr__(self) -> str:
        return f"<Progress next={self.next} runs={len(self.runs)}>"

    @property
    def has_copied(self) -> bool:
        """Whether a record was ever copied."""
        return len(self.runs) > 0

    def translate(self, source: int) -> int:
        """Return the target's offset of a source's one that a group committed, as far as the copy is."""
        return self.runs.translate(min(source, self.next))

    def note_with(self, position: int, runs: Sequence[Run]) -> Note:
        """Return the note to write with more records; nothing is changed.

        Args:
            position: the source's offset after them.
        """
        if len(self.note.runs) < RUNS_PER_NOTE:
            return replace(self.note, next=position, runs=(*self.note.runs, *runs))
        return replace(self.note, first=self.next, next=position, runs=tuple(runs))

    def take(self, note: Note, runs: Sequence[Run], *, copied: int, dropped: int) -> None:
        """Note that a transaction with a note of `note_with` is committed."""
        if note.first != self.note.first:
            last = self.note.runs[-1]
            self._closed.append((self.note.first, last.target + last.length))
        self.note, self.next = note, note.next
        self.runs.extend(runs)
        self.copied += copied
        self.dropped += dropped

    def pass_over(self, position: int) -> None:
        """Note that nothing is left to copy before a position of the source: only control records, or aborted ones."""
        self.next = max(self.next, position)

    def forgettable(self, log_start: int) -> list[int]:
        """Return the first offsets of the notes whose records the target has deleted; they are not returned again."""
        gone = [first for first, end in self._closed if end <= log_start]
        self._closed = [each for each in self._closed if each[1] > log_start]
        return gone
