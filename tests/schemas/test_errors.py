"""Who catches what: a ValueError is the user's, a RegistryError is nobody's row."""

from __future__ import annotations

import pytest

from barnabas.schemas.errors import (
    IncompatibleSchema,
    InvalidSchema,
    RegistryError,
    RegistryNotAvailable,
    SchemaError,
    SchemaNotFound,
)


@pytest.mark.parametrize(
    "error", [IncompatibleSchema, InvalidSchema, SchemaNotFound, RegistryError, RegistryNotAvailable]
)
def test_the_tree(error):
    assert issubclass(error, SchemaError)
    assert issubclass(error, ValueError)
    assert issubclass(error, RegistryError) == (error in (RegistryError, RegistryNotAvailable))
