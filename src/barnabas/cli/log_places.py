"""`--from CUT|TIME|OFFSET`: where to begin and end in each partition of a topic, as typed for replays and exports."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import Bounds, log_bounds, offsets_of
from barnabas.cli.offset_grammar import START, Range, parse_offsets
from barnabas.client.admin import Admin, Cut, TopicMetadata, TopicPartition
from barnabas.client.cuts import is_valid_cut_name
from barnabas.client.log_points import Anchor, Point
from barnabas.client.offsets import READ_UNCOMMITTED
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.nearest import did_you_mean
from barnabas.words.times import parse_time_ms

_Offsets = dict[TopicPartition, int]


def places_of(
    admin: Admin,
    source: TopicMetadata,
    begin: str,
    end: str | None = None,
    isolation: int = READ_UNCOMMITTED,
    *,
    begin_option: str = "--from",
    end_option: str = "--to",
) -> dict[int, tuple[int, int]]:
    """Return where to begin and end in each partition.

    Args:
        begin: the name of a cut, a time, an offset or a range of them.
        end: likewise, without a range; None ends where the range says, or where the log ends now.
        isolation: READ_COMMITTED ends at the last stable offset.
        begin_option, end_option: with which `begin` and `end` were typed.

    Raises:
        BadParameter: `begin` or `end` names no place in a log.
        Failure: a partition has no leader, or the cut does not fit.
        KafkaError: a leader does not answer.
    """
    partitions = [TopicPartition(source.name, each) for each in range(len(source.partitions))]
    bounds = log_bounds(admin, partitions, isolation)
    first, last = _offsets(admin, begin, begin_option, source, bounds)
    if end is not None:
        if last:
            raise click.UsageError(f"{begin_option} is a range, which has an end: leave out {end_option}")
        last, more = _offsets(admin, end, end_option, source, bounds)
        if more:
            raise click.BadParameter("it is a range: give a cut, a time or an offset", param_hint=end_option)
    places = {}
    for where, (start, log_end) in bounds.items():
        until = min(log_end or 0, last.get(where, log_end or 0))
        places[where.partition] = (min(max(first.get(where, 0), start or 0), until), until)
    return places


def _offsets(
    admin: Admin, text: str, option: str, source: TopicMetadata, bounds: Mapping[TopicPartition, Bounds]
) -> tuple[_Offsets, _Offsets]:
    """Return the offsets that a text names, and those where it ends if it is a range."""
    place = _range(text, option, time.time_ns() // 1_000_000)
    if place is None:
        # A partition that is newer than the cut begins at its start.
        return {**offsets_of(admin, START, bounds), **_cut(admin, text, source).offsets}, {}
    return offsets_of(admin, place.begin, bounds), {} if place.end is None else offsets_of(admin, place.end, bounds)


def _range(text: str, option: str, now_ms: int) -> Range | None:
    """Return a range of offsets or a time; None for what may be the name of a cut."""
    try:
        return parse_offsets((text,), now_ms)
    except ValueError as error:
        reason = error
    try:
        return Range(Point(Anchor.TIME, parse_time_ms(text, now_ms)))
    except ValueError:
        if is_valid_cut_name(text):
            return None
    raise click.BadParameter(str(reason), param_hint=option)


def _cut(admin: Admin, name: str, source: TopicMetadata) -> Cut:
    try:
        stored = admin.list_cuts()
    except ValueError as error:
        raise Failure(str(error)) from None
    if name not in stored:
        hint = "`barnabas cut list` shows which exist; a time is -1h or 2026-11-21, an offset 47 or start"
        raise Failure(f"cut {name} does not exist{did_you_mean(name, stored)}", hint)
    kept = stored[name].topic_ids.get(source.name)
    if kept is None:
        raise Failure(
            f"cut {name} has no offsets of topic {source.name}", f"`barnabas cut show {name}` shows what it has"
        )
    if kept != uuid_to_str(source.topic_id):
        raise Failure(
            f"cut {name} is of a topic {source.name} that was deleted; this one was created later",
            "give a time or an offset",
        )
    return stored[name]
