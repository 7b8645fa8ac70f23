"""Masks: fields of records that are hidden from everybody.

    MaskRule(topics=("orders", "payments-*"), fields=("value.card.number", "key", "headers.token"))

A rule names topics by patterns in the manner of a shell (`*`, `?`, `[ab]`), and fields by their paths. A path begins with `key`, `value` or
`headers`; each further name is such a pattern, too, and may stand in any element of a list. Everything behind `headers.` is the pattern of
one name.

A masked part is decoded (`Decoder.masked`), its fields are replaced, and it is written again as JSON; so whatever reads the record later,
also a filter, sees only that. A part that cannot be decoded, or that has no fields, is masked as a whole: a mask never depends on what a
producer wrote. A null stays null.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from barnabas.decoding.decoded import Decoded
from barnabas.records.record import Headers

MASKED = "(masked)"
_PARTS = ("key", "value", "headers")
_Path = tuple[str, ...]


class MaskRule(NamedTuple):
    """Which fields of which topics are masked."""

    topics: tuple[str, ...]
    fields: tuple[str, ...]


class TopicMask(NamedTuple):
    """The masks of one topic.

    Attributes:
        fields: as the rules have them.
        key, value: the paths within them; an empty path is the whole part.
        headers: patterns of names.
    """

    fields: tuple[str, ...]
    key: tuple[_Path, ...]
    value: tuple[_Path, ...]
    headers: tuple[str, ...]

    def hides_header(self, name: str) -> bool:
        """Return whether the values of a header are masked."""
        return any(fnmatchcase(name, each) for each in self.headers)

    def masked_headers(self, headers: Headers) -> Headers:
        """Return headers with the values of hidden ones replaced."""
        return [
            (name, value if value is None or not self.hides_header(name) else MASKED.encode())
            for name, value in headers
        ]


class Masks:
    """The masks of a cluster.

    Raises:
        ValueError: a field does not begin with `key`, `value` or `headers`.
    """

    def __init__(self, rules: Sequence[MaskRule] = ()) -> None:
        for each in (field for rule in rules for field in rule.fields):
            if each.partition(".")[0] not in _PARTS:
                raise ValueError(f"field {each} does not begin with {', '.join(_PARTS)}")
        self._rules = tuple(rules)
        self._known: dict[str, TopicMask | None] = {}

    def __repr__(self) -> str:
        return f"<Masks rules={len(self._rules)}>"

    def of(self, topic: str) -> TopicMask | None:
        """Return the mask of a topic; None if everybody may see all of it."""
        if topic not in self._known:
            self._known[topic] = self._of(topic)
        return self._known[topic]

    def formats(self, topic: str, key_as: str, value_as: str) -> tuple[str, str]:
        """Return how the parts of a topic's records are decoded after its mask."""
        mask = self.of(topic)
        if mask is None:
            return key_as, value_as
        return "json" if mask.key else key_as, "json" if mask.value else value_as

    def _of(self, topic: str) -> TopicMask | None:
        rules = [rule for rule in self._rules if any(fnmatchcase(topic, each) for each in rule.topics)]
        fields = tuple(dict.fromkeys(field for rule in rules for field in rule.fields))
        if not fields:
            return None
        paths = [tuple(each.split(".")) for each in fields]
        return TopicMask(
            fields,
            tuple(path[1:] for path in paths if path[0] == "key"),
            tuple(path[1:] for path in paths if path[0] == "value"),
            tuple(".".join(path[1:]) or "*" for path in paths if path[0] == "headers"),
        )


def masked_bytes(found: Decoded, paths: Sequence[_Path]) -> bytes:
    """Return a part with its fields masked, as JSON; all of it if it could not be decoded."""
    try:
        text = json.dumps(MASKED if found.note is not None else _masked(found.data, paths), ensure_ascii=False)
    except RecursionError:
        text = json.dumps(MASKED)
    return text.encode("utf-8", "backslashreplace")


def _masked(data: Any, paths: Sequence[_Path]) -> Any:
    if not paths:
        return data
    if not all(paths):
        return MASKED
    match data:
        case None:
            return None
        case dict():
            return {name: _masked(each, _below(name, paths)) for name, each in data.items()}
        case list():
            return [_masked(each, paths) for each in data]
    return MASKED  # no fields, where the rule expects some


def _below(name: str, paths: Sequence[_Path]) -> list[_Path]:
    return [path[1:] for path in paths if fnmatchcase(name, path[0])]
