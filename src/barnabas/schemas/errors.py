"""Errors of schema registries; each message is a sentence for the user.

    SchemaError (a ValueError)
    ├── SchemaNotFound       40401 subject, 40402 version, 40403 schema
    ├── IncompatibleSchema   409
    ├── InvalidSchema        42201
    └── RegistryError        every other answer
        └── RegistryNotAvailable   no answer, or 5xx, to each attempt

A SchemaError is about a schema: it may be a row's fault. A RegistryError is never a row's fault.
"""

from __future__ import annotations

__all__ = [
    "IncompatibleSchema",
    "InvalidSchema",
    "RegistryError",
    "RegistryNotAvailable",
    "SchemaError",
    "SchemaNotFound",
]


class SchemaError(ValueError):
    """The registry or the folder gives no schema, or the schema cannot be used."""


class SchemaNotFound(SchemaError):
    """There is no such subject, version or schema."""


class IncompatibleSchema(SchemaError):
    """The registry rejects a new version of a subject, because of the subject's compatibility level."""


class InvalidSchema(SchemaError):
    """The registry cannot parse a schema."""


class RegistryError(SchemaError):
    """The registry does not serve the request."""


class RegistryNotAvailable(RegistryError):
    """No address of the registry has answered."""
