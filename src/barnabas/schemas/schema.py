"""A schema, its references, and where a registry has it.

The text of a Protobuf schema is the compiled file (a FileDescriptorProto) in base64, the form in which a registry returns it for
`format=serialized`: Python has no compiler for `.proto` text of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["AVRO", "JSON", "KINDS", "PROTOBUF", "Reference", "RegisteredSchema", "Schema"]

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"
KINDS = (AVRO, JSON, PROTOBUF)


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one needs.

    Attributes:
        name: Avro: the full name of the type; Protobuf: the path of the import; JSON: the address in `$ref`.
        subject: where the registry has it.
        version: which one.
    """

    name: str
    subject: str
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return it as the registry's routes have it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as a registry stores it.

    Attributes:
        text: JSON for AVRO and JSON, a compiled file in base64 for PROTOBUF.
        kind: AVRO, JSON or PROTOBUF.
        references: what it needs.
    """

    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as a request has it; AVRO is the registry's default and stays out, as in Confluent's clients."""
        body: dict[str, Any] = {"schema": self.text}
        if self.kind != AVRO:
            body["schemaType"] = self.kind
        if self.references:
            body["references"] = [each.to_json() for each in self.references]
        return body

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Schema:
        """Return the schema of a response.

        Raises:
            KeyError, TypeError: a field is missing or is of another type.
        """
        references = tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in body.get("references") or ()
        )
        return cls(str(body["schema"]), str(body.get("schemaType") or AVRO), references)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema
