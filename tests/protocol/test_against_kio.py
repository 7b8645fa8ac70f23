"""Bytes and values compared with kio, for every message and version that it knows."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from io import BytesIO
from pkgutil import resolve_name
from typing import Any

import pytest
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from barnabas.protocol.message import Struct
from barnabas.protocol.messages import message_class
from barnabas.protocol.primitives import ZERO_UUID
from tests.protocol.samples import OWN_TAGS, Sampler

SCHEMAS = [
    (path.rpartition(":")[2], version, path)
    for versions in schema_name_map.values()
    for version, kinds in versions.items()
    for path in kinds.values()
]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def plain(value: Any) -> Any:
    """A value of either codec without its Python dress."""
    if isinstance(value, Struct):
        return [plain(getattr(value, name)) for name in value.FIELDS]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, enum.Enum):
        return value.value
    return bytes(value) if isinstance(value, memoryview) else value


def agree(ours: Any, theirs: Any, version: int) -> None:
    """Compare a struct with kio's dataclass, field by field in the order of the definition."""
    present = [field.name for field in fields_of(ours) if version in field.versions and field.tag < OWN_TAGS]
    names = [field.name for field in dataclasses.fields(theirs)]
    assert len(present) == len(names), (present, names)
    for mine, other in zip(present, names, strict=True):
        compare(getattr(ours, mine), getattr(theirs, other), version, f"{type(ours).__name__}.{mine}")


def compare(ours: Any, theirs: Any, version: int, where: str) -> None:
    if isinstance(ours, list) and theirs is not None:
        assert len(ours) == len(theirs), where
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other, version, where)
    elif isinstance(ours, Struct):
        agree(ours, theirs, version)
    elif theirs is None:
        assert ours in (None, ZERO_UUID, -1), where  # kio has no zero uuid and no time -1
    else:
        assert plain(ours) == plain(theirs), where


SPECS: dict[str, Any] = {}


def fields_of(value: Struct) -> Any:
    """The definition of a struct's fields, found through its qualified name."""
    path = type(value).__qualname__
    if path not in SPECS:
        name, _, nested = path.partition(".")
        spec = message_class(name).SPEC
        SPECS[path] = (spec.structs[nested] if nested else spec.root).fields
    return SPECS[path]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in SCHEMAS}))
def test_kio_reads_and_writes_the_same(name: str) -> None:
    for message, version, path in SCHEMAS:
        if message != name:
            continue
        entity_type = resolve_name(path)
        for seed in range(2):
            ours = Sampler(f"{name} {version} {seed}", modest=True).message(name, version)
            encoded = ours.encode(version)
            theirs, size = entity_reader(entity_type)(encoded, 0)
            assert size == len(encoded)
            agree(ours, theirs, version)
            written = BytesIO()
            entity_writer(entity_type)(written, theirs)
            assert written.getvalue() == encoded
            assert message_class(name).decode(written.getvalue(), version) == ours


def test_kio_knows_no_version_that_we_lack() -> None:
    for name, version, _ in SCHEMAS:
        cls = message_class(name)
        assert cls.MIN_VERSION <= version <= cls.MAX_VERSION
