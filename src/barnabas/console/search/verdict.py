"""The part of the range that a search has read, and has not read: in sentences, and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.cli.failure import failure_of
from barnabas.cli.wording import counted, first_few
from barnabas.console.search.query import FORMAT_FIELDS
from barnabas.console.search.search import Outcome, Stop
from barnabas.console.search.span import PartitionSpan

_TEXTS = ("text", "hex", "base64")
"""Formats without fields."""


class Verdict(NamedTuple):
    """The part of a range that was read.

    Attributes:
        is_complete: every offset of the range was read, and every record was judged.
        read, wanted: offsets.
        records, control, empty, removed, damaged: of the offsets that were read: records, control records, offsets without a record,
            and what could not be read.
        unjudged: records that the filter could not be asked about, by the part that could not be decoded.
        sentences: first what was read; then each thing that was not, or is not shown.
    """

    is_complete: bool
    read: int
    wanted: int
    records: int
    control: int
    empty: int
    removed: int
    damaged: int
    unjudged: Mapping[str, int]
    sentences: list[str]

    def data(self) -> dict[str, object]:
        """Return it for programs."""
        return {
            "complete": self.is_complete,
            "unjudged_records": sum(self.unjudged.values()),
            "undecoded_values": self.unjudged.get("value", 0),
            "undecoded_keys": self.unjudged.get("key", 0),
            "read_offsets": self.read,
            "wanted_offsets": self.wanted,
            "records": self.records,
            "control_records": self.control,
            "empty_offsets": self.empty,
            "removed_offsets": self.removed,
            "damaged_offsets": self.damaged,
            "notes": self.sentences,
        }


def verdict_of(outcome: Outcome) -> Verdict:
    """Return what a search has read up to now."""
    newest = outcome.query.is_newest_first
    known = [each for each in outcome.spans if each.is_known]
    unknown = [each for each in outcome.spans if not each.is_known]
    read, wanted = sum(each.passed(newest_first=newest) for each in known), sum(each.wanted for each in known)
    records, control = sum(each.records for each in known), sum(each.control for each in known)
    removed, damaged = sum(each.removed for each in known), sum(each.damaged for each in known)
    empty = read - records - control - removed - damaged
    lost = bool(
        removed or damaged or unknown or any(outcome.unjudged.values()) or outcome.is_deleted or outcome.failures
    )
    is_complete = read == wanted and not lost
    sentences = [_first(outcome, is_complete, read, wanted, _parts(records, control, empty))]
    if outcome.is_deleted:
        sentences.append(
            f"Topic {outcome.query.topic} was deleted, and maybe created again, while it was searched: the rest is gone."
        )
    if unknown:
        sentences.append(f"Not read: {_named(unknown)} had no leader when the search began.")
    for partition, error in outcome.failures.items():
        where = next(each for each in outcome.spans if each.partition == partition).position
        side = "below" if newest else "from"
        reason = failure_of(error, f"topic {outcome.query.topic}").format_message()
        sentences.append(f"Not read: partition {partition} {side} offset {where}: {reason}.")
    if removed:
        sentences.append(
            f"Not read: {counted(removed, 'offset')} that retention or an administrator had removed before the search came there."
        )
    if damaged:
        example = f", such as {outcome.damage}" if outcome.damage else ""
        sentences.append(f"Not read: {counted(damaged, 'offset')} in damaged batches{example}.")
    sentences += [_not_judged(outcome, part, count) for part, count in outcome.unjudged.items() if count]
    if held_back := sum(each.held_back for each in known):
        sentences.append(
            f"Not read: {counted(held_back, 'offset')} at the end, which open transactions hold back from read_committed."
        )
    if outcome.hidden:
        sentences.append(f"Not shown: {counted(outcome.hidden, 'record')} of aborted transactions.")
    return Verdict(is_complete, read, wanted, records, control, empty, removed, damaged, outcome.unjudged, sentences)


def _not_judged(outcome: Outcome, part: str, count: int) -> str:
    records, why = counted(count, "record"), outcome.why_unjudged.get(part)
    example = f", such as {why}" if why else ""
    if not part:
        return f"Not judged: {records} that the filter cannot be asked about{example}."
    format = outcome.query.value_as if part == "value" else outcome.query.key_as
    choose = f"choose another format under {FORMAT_FIELDS[part]}"
    if format in _TEXTS:
        return f"Not judged: {records}, because the filter asks for a field of the {part}, read as {format}: {choose}."
    if not format:
        choose = choose.replace("another", "the")
        return f"Not judged: {records} whose {part} was not decoded, since its format was not guessed: {choose}."
    return f"Not judged: {records} whose {part} could not be decoded as {format}{example}."


def _first(outcome: Outcome, is_complete: bool, read: int, wanted: int, parts: str) -> str:
    if not wanted and not is_complete:
        return "Nothing was read."
    if not wanted:
        return "The range is empty: there is nothing to read."
    if is_complete:
        return f"Complete: all {counted(wanted, 'offset')} of the range were read: {parts}."
    said = f"Read {read} of {counted(wanted, 'offset')}: {parts}"
    if outcome.stop is Stop.END or outcome.is_deleted:
        return f"{said}."
    return f"{said}. It stopped because {outcome.stop.value}."


def _parts(records: int, control: int, empty: int) -> str:
    words = [counted(records, "record")]
    if control:
        words.append(counted(control, "control record"))
    if empty:
        words.append(f"{counted(empty, 'offset')} without a record, as compaction leaves them")
    return ", ".join(words)


def _named(spans: list[PartitionSpan]) -> str:
    names = first_few(each.partition for each in spans)
    return f"partition{'' if len(spans) == 1 else 's'} {', '.join(names)}"
