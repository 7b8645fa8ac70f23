"""The schema that a caller of `decode` or `encode` gives: a value, a file or a subject; and where other schemas are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.schema import RegisteredSchema
from barnabas.schemas.source import SchemaSource

__all__ = ["GivenSchema"]


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """A schema, and how values refer to it.

    Attributes:
        schema: a value of the format, or the path of a file that holds one; None for the subject's.
        framed: Confluent's frame is in front of each value.
        message: Protobuf: the name of the message; None for the first.
        source: has the schemas that wrote the values; None if they are not looked up.
        subject: the name of a subject of the source.
        version: its version, by number or as `latest`.
    """

    schema: Any
    framed: bool = False
    message: str | None = None
    source: SchemaSource | None = None
    subject: str | None = None
    version: int | str = "latest"

    def value(self) -> Any:
        """Return the schema; if it is the path of a file, the file's content as bytes.

        Raises:
            ValueError: the file cannot be read.
        """
        if isinstance(self.schema, Path) or (isinstance(self.schema, str) and _is_file(self.schema)):
            return _read(Path(self.schema))
        return self.schema

    def schemas(self) -> SchemaSource:
        """Return the source, which the caller has checked to be there."""
        assert self.source is not None
        return self.source

    def registered(self, kind: str) -> RegisteredSchema:
        """Return the version of the subject.

        Raises:
            SchemaError: there is none, or it is of another kind.
        """
        assert self.subject is not None
        found = self.schemas().version(self.subject, self.version)
        if found.schema.kind != kind:
            raise ValueError(f"the schema of subject {self.subject} is of type {found.schema.kind}, not {kind}")
        return found

    def check_source(self) -> None:
        """Raise a RegistryError if there is a registry that does not serve requests."""
        if isinstance(self.source, SchemaRegistry):
            self.source.check()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the schema {path}: {(error.strerror or str(error)).lower()}") from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with a null
        return False
