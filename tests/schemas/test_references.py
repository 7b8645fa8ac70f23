"""References that cannot be resolved; the others are in `test_pull`."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.schema import Reference, Schema


def test_schemas_that_need_each_other_or_nothing_that_is_there():
    loop = Schema("1", references=(Reference("a", "s", 1),))
    with pytest.raises(SchemaError, match="version 1 of subject s refers to itself"):
        needed_by_schema(KnownSchemas("folder", {1: loop}, {"s": {1: 1}}), loop)
    with pytest.raises(SchemaNotFound, match="folder has no subject s"):
        needed_by_schema(KnownSchemas("folder", {}), loop)


def test_a_schema_that_two_others_need_comes_once():
    base, left = Schema("0"), Schema("1", references=(Reference("base", "base", 1),))
    top = Schema("2", references=(Reference("left", "left", 1), Reference("base", "base", 1)))
    known = KnownSchemas("folder", {1: base, 2: left}, {"base": {1: 1}, "left": {1: 2}})
    assert needed_by_schema(known, top) == [("base", base), ("left", left)]
