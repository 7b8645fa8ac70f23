"""Whether values of one Avro schema can be read as another one, found without a value.

These are the rules of Avro's "Schema Resolution" that no value can change: names of records, missing defaults, primitive types. Of a
union one branch that can be read is enough, so a schema that passes may still have a value that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.spark.decoding.avro_schemas import ParsedAvro

__all__ = ["unreadable"]

_PROMOTED = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}


def unreadable(writer: ParsedAvro, reader: ParsedAvro) -> str | None:
    """Return why no value of a schema can be read as another one; None if some can."""
    return _Resolution(writer.names, reader.names).why(writer.schema, reader.schema, "the value")


class _Resolution:
    def __init__(self, writers: Mapping[str, Any], readers: Mapping[str, Any]) -> None:
        self._writers = writers
        self._readers = readers
        self._compared: set[tuple[str, str]] = set()

    def why(self, writer: Any, reader: Any, where: str) -> str | None:
        """Return why a schema cannot be read as another one."""
        writer, reader = _definition(writer, self._writers), _definition(reader, self._readers)
        if isinstance(writer, list) or isinstance(reader, list):
            return self._of_unions(writer, reader, where)
        written, read = _kind(writer), _kind(reader)
        if written != read:
            promoted = read in _PROMOTED.get(written, ())
            return None if promoted else f"{where} is written as {written} and read as {read}"
        if written == "record":
            return self._of_records(writer, reader)
        if written in ("array", "map"):
            inner = "items" if written == "array" else "values"
            return self.why(writer[inner], reader[inner], f"{where}'s {inner}")
        if written == "fixed" and writer["size"] != reader["size"]:
            return f"{where} is written with {writer['size']} bytes and read with {reader['size']}"
        return None

    def _of_unions(self, writer: Any, reader: Any, where: str) -> str | None:
        written = writer if isinstance(writer, list) else [writer]
        read = reader if isinstance(reader, list) else [reader]
        reasons = [self.why(one, other, where) for one in written for other in read]
        return reasons[0] if reasons and None not in reasons else None

    def _of_records(self, writer: Any, reader: Any) -> str | None:
        names = (writer["name"], reader["name"])
        if names in self._compared:
            return None
        self._compared.add(names)
        by_name = {each["name"]: each for each in writer["fields"]}
        for field in reader["fields"]:
            found = next(
                (by_name[name] for name in (field["name"], *field.get("aliases", ())) if name in by_name), None
            )
            if found is None:
                if "default" not in field:
                    return f"it has no field {field['name']}, which has no default"
            elif reason := self.why(found["type"], field["type"], f"field {field['name']}"):
                return reason
        return None


def _definition(schema: Any, names: Mapping[str, Any]) -> Any:
    """Return the definition of a name, and the inner type of `{"type": {...}}`."""
    if isinstance(schema, str):
        return names.get(schema, schema)
    if isinstance(schema, Mapping) and (not isinstance(schema["type"], str) or schema["type"] in names):
        return _definition(schema["type"], names)
    return schema


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, Mapping) else schema)
