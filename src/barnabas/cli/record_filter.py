"""`--filter NAME=VALUE`: which records a command takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from barnabas.cli.session import parse_pairs
from barnabas.retries.record import Record
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

_T = TypeVar("_T")


def _has_header(record: Record, text: str) -> bool:
    name, colon, value = text.partition(":")
    return any(each == name and (not colon or held == value.encode()) for each, held in record.headers)


RECORD_FILTERS: dict[str, Callable[[Record, str], bool]] = {
    "key": lambda record, text: record.key == text.encode(),
    "value": lambda record, text: text.encode() in (record.value or b""),
    "header": _has_header,
    "partition": lambda record, text: text == str(record.partition),
}
RECORD_FILTER_HELP = "Only records with key=K, value=PART, header=NAME[:VALUE] or partition=N; repeat."


def parse_filter(texts: tuple[str, ...], known: Mapping[str, Callable[[_T, str], bool]]) -> Callable[[_T], bool]:
    """Return whether a record passes all filters.

    Args:
        known: the filters by name.

    Raises:
        BadParameter: a text is not NAME=VALUE, or nothing has that name.
    """
    wanted = parse_pairs(texts, "--filter")
    for name in wanted:
        if name not in known:
            words = f"'{printable(name)}' is not one of {', '.join(known)}{did_you_mean(name, known)}"
            raise click.BadParameter(words, param_hint="--filter")
    return lambda each: all(known[name](each, text) for name, text in wanted.items())
