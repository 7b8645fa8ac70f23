"""Whether an Avro schema lets a small value become a large one, or a deep one.

A list says how many elements it has, and an element may have no bytes: `null`, a record without fields, fixed of size 0. Nine bytes then
claim more elements than any memory has. A schema that contains itself may be nested as deep as a value is long, and the reader in C does
not count how deep it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class AvroBounds(NamedTuple):
    """The values that a schema allows.

    Attributes:
        has_free_elements: a list or map may have elements without bytes.
        is_recursive: a type contains itself.
    """

    has_free_elements: bool
    is_recursive: bool


def bounds_of(schema: Any, names: dict[str, Any]) -> AvroBounds:
    """Return what a parsed schema allows; `names` has its named types."""
    walk = _Walk(names)
    walk.is_free(schema, ())
    return AvroBounds(walk.has_free_elements, walk.is_recursive)


class _Walk:
    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._known: dict[str, bool] = {}
        self.has_free_elements = False
        self.is_recursive = False

    def is_free(self, schema: Any, within: tuple[str, ...]) -> bool:
        """Return whether a value of a schema may have no bytes; note what else the schema allows."""
        if isinstance(schema, list):  # the branch's number has a byte
            for each in schema:
                self.is_free(each, within)
            return False
        if isinstance(schema, str):
            return self._of_name(schema, within) if schema in self._names else schema == "null"
        match schema["type"]:
            case "array":
                self.has_free_elements |= self.is_free(schema["items"], within)
            case "map":
                self.is_free(schema["values"], within)
            case "record" | "error":
                return self._of_record(schema, within)
            case "fixed":
                return bool(schema["size"] == 0)
            case "enum":
                return False
            case kind:
                return self.is_free(kind, within)
        return False

    def _of_name(self, name: str, within: tuple[str, ...]) -> bool:
        if name in within:
            self.is_recursive = True
            return False
        if name not in self._known:
            self._known[name] = self.is_free(self._names[name], within)
        return self._known[name]

    def _of_record(self, schema: Any, within: tuple[str, ...]) -> bool:
        name = schema.get("name", "")
        if name in within:
            self.is_recursive = True
            return False
        inner = (*within, name)
        # Every field is looked at, also behind one that has bytes.
        are_free = [self.is_free(field["type"], inner) for field in schema["fields"]]
        return all(are_free)
