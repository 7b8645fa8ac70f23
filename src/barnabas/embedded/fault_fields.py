"""The fields of a JSON object, or of a query, that the HTTP API of faults takes: checked, with one sentence for each mistake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

__all__ = ["BadOrder", "Field", "checked", "from_query"]


class BadOrder(ValueError):
    """A request that cannot be carried out as it is; the text says what to send instead."""


class Field(NamedTuple):
    """A field.

    Attributes:
        kind: `text`, `number`, `whole number`, `node`, `nodes` (a node or a list of them), `pair` (a node or a list of two), `api` (a name
            or a number), `times` (a whole number or null), `settings` (an object).
        what: its meaning, for people.
    """

    name: str
    kind: str
    what: str
    is_needed: bool = False

    def shown(self) -> str:
        return f"{self.kind}{'' if self.is_needed else ', optional'}: {self.what}"


def checked(given: object, fields: tuple[Field, ...], whose: str) -> dict[str, Any]:
    """Return the fields of an object, by name; only those that are given.

    Args:
        whose: what the fields belong to, for the sentences.

    Raises:
        BadOrder: one is unknown, missing or of another type.
    """
    if not isinstance(given, Mapping):
        raise BadOrder(f"{whose} needs a JSON object: send {_example(fields)}")
    known = {field.name: field for field in fields}
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
            raise BadOrder(f"{whose} has no field {printable(name)}{hint}")
    for field in fields:
        if field.is_needed and field.name not in given:
            raise BadOrder(f"{whose} needs the field {field.name}: {field.what}")
    return {name: _checked(known[name], value) for name, value in given.items() if value is not None or name == "times"}


def from_query(given: Mapping[str, str], fields: tuple[Field, ...], whose: str) -> dict[str, Any]:
    """As `checked`, for the texts of a query."""
    known = {field.name: field for field in fields}
    values: dict[str, Any] = {}
    for name, text in given.items():
        kind = known[name].kind if name in known else "text"
        try:
            values[name] = int(text) if kind in ("whole number", "node") else float(text) if kind == "number" else text
        except ValueError:
            raise BadOrder(f"{name}={printable(text)} is not {_A[kind]}: {known[name].what}") from None
    return checked(values, fields, whose)


def _example(fields: tuple[Field, ...]) -> str:
    inner = ", ".join(f'"{field.name}": …' for field in fields if field.is_needed or len(fields) == 1)
    return f"{{{inner}}}"


def _checked(field: Field, value: object) -> Any:
    if _is(field.kind, value):
        if field.kind == "pair" and isinstance(value, list):
            return tuple(value)
        return value
    raise BadOrder(f"{field.name} is not {_A[field.kind]}: {field.what}")


_A = {
    "text": "a text",
    "number": "a number",
    "whole number": "a whole number",
    "node": "a node",
    "nodes": "a node or a list of nodes",
    "pair": "a node or a list of two",
    "api": "a name or a number",
    "times": "a whole number or null",
    "settings": "a JSON object",
}


def _is(kind: str, value: object) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    if kind == "number":
        return is_whole or isinstance(value, float)
    if kind in ("whole number", "node"):
        return is_whole
    if kind == "times":
        return is_whole or value is None
    if kind == "api":
        return is_whole or isinstance(value, str)
    if kind == "settings":
        return isinstance(value, Mapping)
    if is_whole:
        return True
    is_list = isinstance(value, list) and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    if kind == "pair":
        return is_list and isinstance(value, list) and len(value) == 2
    assert kind == "nodes", kind
    return is_list
