"""Whether every value of one Avro schema can be read as another one: the specification's rules of schema resolution.

| writer | reader | readable |
|---|---|---|
| a primitive type | the same | yes |
| int · long · float | long, float, double · float, double · double | yes, promoted |
| string · bytes | bytes · string | yes |
| array, map | the same | if the items, the values, are |
| fixed | fixed of the same name and size | yes |
| enum | enum of the same name | if the reader has each of the writer's symbols, or a default |
| record | record of the same name | if each of the reader's fields is in the writer and readable, or has a default |
| union | any | if each of the writer's types is readable |
| no union | union | if it is readable as one of the reader's types |

A name is the same if its last part is, or if it is one of the reader's aliases. A reader's field is found by its name, else by one of its
aliases. Fields and symbols that only the writer has do no harm.

Every value counts. A reader may be lucky with a union that shrank, as long as no value of the missing type appears; that is not enough.

Source: the Avro specification, "Schema Resolution" and "Aliases".
"""

from __future__ import annotations

from barnabas.registry.avro_types import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Union,
    type_name,
)

__all__ = ["unreadable_parts"]

_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def unreadable_parts(writer: AvroType, reader: AvroType) -> list[str]:
    """Return a sentence for each part of a schema that cannot be read as another schema says; nothing if every value can."""
    return _Resolution().compare(writer, reader, "")


class _Resolution:
    def __init__(self) -> None:
        self._compared: dict[tuple[int, int], list[str]] = {}

    def compare(self, writer: AvroType, reader: AvroType, path: str) -> list[str]:
        """Return why a type cannot be read as another one."""
        pair = (id(writer), id(reader))
        if pair not in self._compared:
            self._compared[pair] = []  # A recursive type is as readable as the rest of it.
            found = self._reasons(writer, reader, path)
            if found:
                self._forget_what_rests_on(pair)
            self._compared[pair] = found
        return self._compared[pair]

    def _forget_what_rests_on(self, pair: tuple[int, int]) -> None:
        """Forget the readable pairs that were compared since: they may have taken this one for readable."""
        since = list(self._compared)
        for each in since[since.index(pair) :]:
            if not self._compared[each]:
                del self._compared[each]

    def _reasons(self, writer: AvroType, reader: AvroType, path: str) -> list[str]:
        where = path or "the schema"
        match writer, reader:
            case Union(), _:
                return [why for each in writer.branches for why in self.compare(each, reader, path)]
            case _, Union():
                if any(not self.compare(writer, each, path) for each in reader.branches):
                    return []
                return [f"{where}: the reader's union has no type that reads {_shown(writer)}"]
            case Primitive(), Primitive():
                if reader.name == writer.name or reader.name in _PROMOTED.get(writer.name, ()):
                    return []
            case Array(), Array():
                return self.compare(writer.items, reader.items, f"{path}/items")
            case Map(), Map():
                return self.compare(writer.values, reader.values, f"{path}/values")
        if isinstance(writer, Named) and isinstance(reader, Named) and type(writer) is type(reader):
            return self._named(writer, reader, path, where)
        return [f"{where}: {_shown(writer)} cannot be read as {_shown(reader)}"]

    def _named(self, writer: Named, reader: Named, path: str, where: str) -> list[str]:
        if not _is_same_name(writer, reader):
            return [f"{where}: {_shown(writer)} cannot be read as {_shown(reader)}, which has another name"]
        match writer, reader:
            case Fixed(), Fixed() if writer.size != reader.size:
                return [f"{where}: {writer.size} bytes cannot be read as {reader.size}"]
            case Enum(), Enum() if reader.default is None:
                missing = [each for each in writer.symbols if each not in reader.symbols]
                return [f"{where}: the reader has no symbol {', '.join(missing)}, and no default"] if missing else []
            case Record(), Record():
                return self._records(writer, reader, path)
        return []

    def _records(self, writer: Record, reader: Record, path: str) -> list[str]:
        written = {each.name: each for each in writer.fields}
        found: list[str] = []
        for field in reader.fields:
            its = _written_as(field, written)
            if its is not None:
                found += self.compare(its.type, field.type, f"{path}/{field.name}")
            elif not field.has_default:
                found.append(f"{path}/{field.name}: the reader's field has no default, and is not written")
        return found


def _written_as(field: Field, written: dict[str, Field]) -> Field | None:
    return next((written[name] for name in (field.name, *field.aliases) if name in written), None)


def _is_same_name(writer: Named, reader: Named) -> bool:
    return _last_part(writer.name) == _last_part(reader.name) or writer.name in reader.aliases


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _shown(found: AvroType) -> str:
    return f"{type_name(found)} {found.name}" if isinstance(found, Named) else type_name(found)
