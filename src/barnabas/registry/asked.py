"""A request to the registry: the parts of its path, its query, and its body as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from barnabas.registry.problems import Problem, invalid_schema, invalid_version
from barnabas.registry.registering import Registration
from barnabas.registry.registry import Registry
from barnabas.registry.state import LATEST
from barnabas.schemas.schema import AVRO, Reference, Schema

__all__ = ["Asked"]

T = TypeVar("T")

_LARGEST = 2**31 - 1
_NOT_KEPT = ("metadata", "ruleSet", "schemaTagsToAdd", "schemaTagsToRemove")


class Asked(NamedTuple):
    """A request.

    Attributes:
        parts: by name, the parts of the path.
        query: the parameters; the last one of a name.
        content: the body.
    """

    registry: Registry
    parts: Mapping[str, str]
    query: Mapping[str, str]
    content: bytes

    @property
    def subject(self) -> str:
        """The subject in the path."""
        return self.parts["subject"]

    def is_set(self, name: str) -> bool:
        """Return whether a parameter is true."""
        return self.query.get(name, "").lower() == "true"

    def version(self) -> int:
        """Return the version in the path; LATEST for `latest` and -1.

        Raises:
            Problem: 42202.
        """
        text = self.parts["version"]
        if text in ("latest", "-1"):
            return LATEST
        number = _number(text)
        if number is None or number < 1:
            raise invalid_version(text)
        return number

    def schema_id(self) -> int:
        """Return the id in the path.

        Raises:
            Problem: 404: it is not a number.
        """
        number = _number(self.parts["id"])
        if number is None:
            raise Problem(404, 404, "HTTP 404 Not Found")
        return number

    def page(self, found: Sequence[T]) -> list[T]:
        """Return the part of a list that `offset` and `limit` choose."""
        offset = _number(self.query.get("offset", "")) or 0
        limit = _number(self.query.get("limit", ""))
        return list(found[offset:] if limit is None else found[offset : offset + limit])

    def body(self) -> dict[str, Any]:
        """Return the body.

        Raises:
            Problem: 400: it is not a JSON object.
        """
        try:
            found = json.loads(self.content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Problem(400, 400, "the request's body is not a JSON object")
        return found

    def registration(self) -> Registration:
        """Return the schema in the body.

        Raises:
            Problem: 400, 422, 42201.
        """
        body = self.body()
        for name in _NOT_KEPT:
            if body.get(name):
                raise Problem(422, 422, f"this registry keeps no {name}")
        text, kind = body.get("schema"), body.get("schemaType") or AVRO
        if not isinstance(text, str) or not text.strip():
            raise invalid_schema("it is empty")
        if not isinstance(kind, str):
            raise invalid_schema("schemaType is not a text")
        schema = Schema(text, kind.upper(), _references(body.get("references") or []))
        schema_id, version = _whole(body, "id", 0), _whole(body, "version", 1)
        return Registration(self.subject, schema, self.is_set("normalize"), schema_id, version)


def _references(found: Any) -> tuple[Reference, ...]:
    try:
        references = tuple(Reference(each["name"], each["subject"], each["version"]) for each in found)
    except (KeyError, TypeError):
        references = ()
    are_valid = len(references) == len(found) and all(
        isinstance(each.name, str) and isinstance(each.subject, str) and type(each.version) is int
        for each in references
    )
    if not are_valid:
        raise invalid_schema("a reference has name, subject and version")
    if len({each.name for each in references}) < len(references):
        raise invalid_schema("two references have one name")
    return references


def _whole(body: dict[str, Any], name: str, least: int) -> int | None:
    found = body.get(name)
    if found is None:
        return None
    if type(found) is not int or found > _LARGEST:
        raise Problem(422, 422, f"{name} is not a number")
    return found if found >= least else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= _LARGEST else None
