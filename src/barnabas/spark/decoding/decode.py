"""`decode`: a column of bytes becomes a typed column, and bad rows keep their error.

    df ──► df + decoded: struct<…> + error: string

| format | by | schema |
|---|---|---|
| json | Spark's `from_json` | DDL or a StructType, or a file of DDL or of a StructType's JSON |
| avro | `fastavro` | a schema as JSON or dict, or a file of it (.avsc) |
| protobuf | `protobuf` | a descriptor set, or a file of it |

Instead of a schema, a subject of a registry or of a folder can be given. The type of the decoded column comes from there, and not from
the records. So a query keeps its types while the schema of its topic evolves, until it is restarted.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.schemas.source import source_of
from barnabas.spark.decoding.given_columns import check_columns, check_words, named, with_value_and_error
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["decode"]

# Each has a function `column`. The libraries of two of them are an extra.
_FORMATS = {
    "json": "barnabas.spark.decoding.json_decoder",
    "avro": "barnabas.spark.decoding.avro_decoder",
    "protobuf": "barnabas.spark.decoding.protobuf_decoder",
}


def decode(
    df: DataFrame,
    column: str = "value",
    format: str = "json",
    schema: Any = None,
    *,
    message: str | None = None,
    framing: str = "plain",
    schemas: str | Path | Mapping[str, Any] | None = None,
    subject: str | None = None,
    version: int | str = "latest",
    into: str = "decoded",
    error: str = "error",
) -> DataFrame:
    """Add a column of decoded values and a column of errors.

    Args:
        df: of a batch or of a stream.
        column: the name of a column of bytes or text.
        format: json, avro or protobuf.
        schema: the schema of the decoded column, in one of the forms that `docs/schemas.md` lists. Text that names an existing
            file is read from it.
        message: protobuf: the message's full name; None for the first of the compiled file.
        framing: plain, or confluent: a zero byte and four bytes of schema id are in front of each value.
        schemas: framing confluent: where the writers' schemas are: the address of a schema registry, its options, or a folder.
        subject: the subject of `schemas` whose schema the column has. With schema= as well, its newest schema must be readable as
            that one.
        version: of the subject: a number, or latest.
        into: the name of the decoded column. It is null if the value is null, or if it cannot be decoded.
        error: the name of the column of errors. It is null if the value is null, or if it was decoded.

    Raises:
        ValueError: an argument or a schema is not valid.
        RegistryError: the schema registry does not answer, or rejects the credentials.
        NotInstalled: the library of the format is not installed.
    """
    check_words(format, _FORMATS, framing, message, schemas)
    check_columns(df, [column], into, error)
    framed = framing == "confluent"
    _check_schema(format, schema, framed, schemas, subject)
    source = None if schemas is None else source_of(schemas)
    given = GivenSchema(schema, framed, message, source, subject, version)
    given.check_source()
    with needed_by("decode", "schemas"):
        found = import_module(_FORMATS[format]).column(named(column).cast("binary"), given)
    return with_value_and_error(df, found.both, found.split, into, error)


def _check_schema(format: str, schema: Any, framed: bool, schemas: Any, subject: str | None) -> None:
    if subject is not None and schemas is None:
        raise ValueError("subject= needs schemas=, the registry or the folder that has the subject")
    if schema is None and subject is None:
        raise ValueError("decode needs schema= or subject=, the schema of the column that it makes")
    if format == "avro" and framed and schemas is None:
        raise ValueError(
            "framing confluent needs schemas=, a registry or a folder: Avro is read with the schema that wrote it"
        )
