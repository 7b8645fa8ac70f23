"""`encode`: typed columns become a column of bytes, and bad rows keep their error.

    df ──► df + encoded: binary + error: string

The schema and its id are settled on the driver before the first row. Executors ask no registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.schemas.schema import Reference
from barnabas.schemas.source import source_of
from barnabas.spark.decoding.given_columns import check_columns, check_words, named, with_value_and_error
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.encoding.row_encoder import encoded_column
from barnabas.spark.encoding.schema_ids import SubjectNaming
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["encode"]

_FORMATS = {
    "avro": "barnabas.spark.encoding.avro_encoder",
    "json": "barnabas.spark.encoding.json_encoder",
    "protobuf": "barnabas.spark.encoding.protobuf_encoder",
}


def encode(
    df: DataFrame,
    columns: str | Sequence[str],
    format: str = "avro",
    schema: Any = None,
    *,
    message: str | None = None,
    framing: str = "confluent",
    schemas: str | Path | Mapping[str, Any] | None = None,
    subject: str | None = None,
    version: int | str = "latest",
    topic: str | None = None,
    part: str = "value",
    strategy: str = "TopicName",
    auto_register: bool = False,
    references: Sequence[Mapping[str, Any]] = (),
    into: str = "encoded",
    error: str = "error",
) -> DataFrame:
    """Add a column of encoded values and a column of errors.

    Args:
        df: of a batch or of a stream.
        columns: the name of a struct column, or the names of the columns that become the fields.
        format: avro, json or protobuf.
        schema: what the values are encoded by: Avro or JSON Schema as JSON, as a dict or a file, or a descriptor set; None for the
            subject's.
        message: protobuf: the message's full name; None for the first of the compiled file.
        framing: confluent: a zero byte and four bytes of schema id are in front of each value; or plain.
        schemas: framing confluent: the address of a schema registry, its options, or a folder.
        subject: the subject of the schema; None to name it by strategy=, topic= and part=.
        version: of the subject if there is no schema=: a number, or latest.
        topic: where the values go.
        part: key or value.
        strategy: TopicName, RecordName or TopicRecordName.
        auto_register: register the schema if the subject does not have it. Otherwise that is an error.
        references: avro and json: the schemas that schema= refers to, each a name, a subject and a version.
        into: the name of the encoded column. It is null if the row is null, or if it does not fit the schema.
        error: the name of the column of errors. It is null if the row is null, or if it was encoded.

    Raises:
        ValueError: an argument or a schema is not valid, or does not fit the columns.
        SchemaNotFound: the subject does not have the schema.
        IncompatibleSchema: the registry rejects the schema as a new version.
        RegistryError: the schema registry does not answer, or rejects the credentials.
        NotInstalled: the library of the format is not installed.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    check_words(format, _FORMATS, framing, message, schemas)
    if not names:
        raise ValueError("encode needs the names of columns")
    check_columns(df, names, into, error)
    naming = SubjectNaming(subject, topic, part, strategy)
    framed = framing == "confluent"
    _check_schema(schema, naming, framed, schemas, auto_register)
    known = tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in references)
    source = None if schemas is None else source_of(schemas)
    given = GivenSchema(schema, framed, message, source, naming.of(None) if schema is None else subject, version)
    given.check_source()
    rows = named(columns) if isinstance(columns, str) else F.struct(*map(named, names))
    kind = df.schema[columns].dataType if isinstance(columns, str) else StructType([df.schema[each] for each in names])
    if not isinstance(kind, StructType):
        raise ValueError(f"column {columns} is no struct: give the names of the fields' columns as a list")
    with needed_by("encode", "schemas"):
        found = import_module(_FORMATS[format]).row_format(kind, given, naming, known, register=auto_register)
    both = encoded_column(rows, found)
    return with_value_and_error(df, both, lambda both: (both["encoded"], both["error"]), into, error)


def _check_schema(schema: Any, naming: SubjectNaming, framed: bool, schemas: Any, register: bool) -> None:
    if framed and schemas is None:
        raise ValueError("framing confluent needs schemas=, a registry or a folder that has the schema's id")
    if not framed and schema is None:
        raise ValueError("framing plain needs schema=")
    if schema is None and register:
        raise ValueError("auto_register= needs schema=, the schema to register")
    if schema is None and naming.subject is None and naming.strategy != "TopicName":
        raise ValueError(f"the strategy {naming.strategy} takes the record's name from schema=: give it, or subject=")
