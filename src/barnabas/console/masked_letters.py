"""Dead letters without what the console masks: in their own topic, and in the topic that they came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from barnabas.console.changes.given import BadForm, Given
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.masks import Masks
from barnabas.records.record import Record
from barnabas.retries.headers import FailureHeaders, read_failure
from barnabas.retries.redrive import DeadLetter
from barnabas.words.printable import printable


def masked_letter(decoder: Decoder, letter: DeadLetter) -> DeadLetter:
    """Return a dead letter without the fields that a mask hides."""
    at, mine = letter.record, letter.failure
    masks = {each: mask for each in (at.topic, mine.topic) if each and (mask := decoder.masks.of(each)) is not None}
    for topic in masks:
        plain = Record(at.offset, at.timestamp_ms, at.key, at.value, list(at.headers))
        hidden = decoder.masked(topic, plain, "", "")
        at = replace(at, key=hidden.key, value=hidden.value, headers=tuple(hidden.headers))
    # The text in place of a hidden value could be read as a number, so hidden headers are left out.
    seen = [each for each in letter.record.headers if not any(mask.hides_header(each[0]) for mask in masks.values())]
    return replace(letter, record=at, failure=read_failure(seen) or FailureHeaders()) if masks else letter


def refuse_masked_filters(masks: Masks, topic: str, filters: Iterable[str]) -> None:
    """Refuse filters whose result would tell a masked field of a topic.

    Args:
        filters: NAME=VALUE.

    Raises:
        BadForm: there is such a filter.
    """
    mask = masks.of(topic)
    if mask is None:
        return
    for each in filters:
        name = each.partition("=")[0].strip()
        hides = {"key": mask.key, "value": mask.value}.get(name, mask.headers)
        if hides and name not in ("partition", "offset"):
            raise BadForm(
                f"this console masks {', '.join(mask.fields)} of topic {printable(topic)}:"
                f" the result of the filter {printable(name)} would tell it"
            )


def refuse_target(masks: Masks, topic: str, target: str) -> None:
    """Refuse to copy records into a topic where their masked fields would be seen.

    Args:
        target: empty if the records' own headers name it.

    Raises:
        BadForm: the target's mask lacks a field.
    """
    mask, other = masks.of(topic), masks.of(target) if target else None
    bare = [each for each in (() if mask is None else mask.fields) if other is None or each not in other.fields]
    if target and bare:
        raise BadForm(
            f"this console masks {', '.join(bare)} of topic {printable(topic)}, and not of topic {printable(target)}"
        )


def refuse_telling(masks: Masks, given: Given) -> None:
    """Refuse a form that copies records to another topic, if it would tell what this console masks.

    Args:
        given: has the fields `topic`, `filters` and `to`.

    Raises:
        BadForm: a filter or the target would.
    """
    topic = given.text("topic")
    refuse_masked_filters(masks, topic, given.lines("filters"))
    refuse_target(masks, topic, given.text("to").strip())
