"""A registry or a folder, by what a user writes."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import SchemaError
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.source import shared, source_of


def test_sources(tmp_path):
    for written in ("http://h:1", "https://h", {"url": "http://h:1"}):
        assert isinstance(source_of(written), SchemaRegistry)
    (tmp_path / "1.avsc").write_text('"int"')
    for folder in (tmp_path, str(tmp_path)):
        assert isinstance(found := source_of(folder), KnownSchemas)
    assert source_of(found) is shared(found) is found
    with pytest.raises(SchemaError, match="has no schemas"):
        source_of("ftp://h")


def test_a_process_has_one_client_for_a_registry():
    first, second = source_of("http://h:1"), source_of("http://h:1")
    assert first is not second
    assert shared(first) is shared(second)
