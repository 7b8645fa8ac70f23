"""The id that goes in front of encoded values: found on the driver, once, before the first row.

| given | the id is that of |
|---|---|
| no schema | the subject's version |
| a schema | the subject's version that is this schema; an error if there is none |
| a schema and `auto_register` | the same; the registry makes it a version if it is none |
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.schemas.errors import SchemaNotFound
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.source import SchemaSource
from barnabas.schemas.subject_names import subject_name

__all__ = ["SubjectNaming", "reference", "schema_id"]


@dataclass(frozen=True, slots=True)
class SubjectNaming:
    """How a subject gets its name.

    Attributes:
        subject: the name itself; None to make it of the others.
        topic: where the values go.
        part: key or value.
        strategy: TopicName, RecordName or TopicRecordName.
    """

    subject: str | None = None
    topic: str | None = None
    part: str = "value"
    strategy: str = "TopicName"

    def of(self, record: str | None) -> str:
        """Return the name for a record's full name, which None stands for where there is none.

        Raises:
            SchemaError: a part that the strategy needs is missing.
        """
        return self.subject if self.subject is not None else subject_name(self.strategy, self.topic, self.part, record)


def schema_id(source: SchemaSource, subject: str, schema: Schema, *, register: bool) -> int:
    """Return the id of a schema in a subject.

    Raises:
        SchemaNotFound: the subject does not have it, and it is not to be registered.
        IncompatibleSchema: the registry rejects it.
        RegistryError: the registry does not serve the request.
    """
    if register:
        return source.register(subject, schema)
    return _found(source, subject, schema)[0]


def reference(source: SchemaSource, name: str, schema: Schema, *, register: bool) -> Reference:
    """Return a reference to a schema in the subject of its name, as Confluent's serializer names imports; errors as in `schema_id`."""
    if register:
        source.register(name, schema)
    return Reference(name, name, _found(source, name, schema)[1])


def _found(source: SchemaSource, subject: str, schema: Schema) -> tuple[int, int]:
    try:
        found = source.lookup(subject, schema)
    except SchemaNotFound as error:
        raise SchemaNotFound(
            f"{error}. Register it, or let encode do so with auto_register=True, or leave out schema= to use the subject's"
        ) from None
    return found.schema_id, found.version
