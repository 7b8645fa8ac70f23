"""`decode`: a column of bytes becomes a typed column, and bad rows keep their error.

    df ──► df + decoded: struct<…> + error: string

| format | by | schema |
|---|---|---|
| json | Spark's `from_json` | DDL or a StructType, or a file of DDL or of a StructType's JSON |
| avro | `fastavro` | a schema as JSON or dict, or a file of it (.avsc) |
| protobuf | `protobuf` | a descriptor set, or a file of it |

The type of the decoded column comes from the schema that is given here, and not from the records. So a query keeps its
types while the schema of its topic evolves, until it is restarted with another schema.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.words.nearest import did_you_mean
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
_FRAMINGS = ("plain", "confluent")
_BOTH = "__decoded_and_error"


def decode(
    df: DataFrame,
    column: str = "value",
    format: str = "json",
    schema: Any = None,
    *,
    message: str | None = None,
    framing: str = "plain",
    schemas: str | Path | None = None,
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
        schemas: avro with framing confluent: the folder of the writers' schemas, a file ID.avsc for each id.
        into: the name of the decoded column. It is null if the value is null, or if it cannot be decoded.
        error: the name of the column of errors. It is null if the value is null, or if it was decoded.

    Raises:
        ValueError: an argument or a schema is not valid.
        NotInstalled: the library of the format is not installed.
    """
    _check(df, column, format, framing, into, error)
    given = GivenSchema(schema, framing == "confluent", message, None if schemas is None else Path(schemas))
    _check_schema(given, format)
    with needed_by("decode", "schemas"):
        module = import_module(_FORMATS[format])
    found = module.column(F.col(_quoted(column)).cast("binary"), given)
    decoded, why = found.split(F.col(_BOTH))
    kept = [F.col(_quoted(name)) for name in df.columns]
    return df.withColumn(_BOTH, found.both).select(*kept, decoded.alias(into), why.alias(error))


def _check(df: DataFrame, column: str, format: str, framing: str, into: str, error: str) -> None:
    for name, word, known in (("format", format, tuple(_FORMATS)), ("framing", framing, _FRAMINGS)):
        if word not in known:
            raise ValueError(f"{name} '{word}' is not one of {', '.join(known)}{did_you_mean(word, known)}")
    if column not in df.columns:
        raise ValueError(f"there is no column '{column}'{did_you_mean(column, df.columns)}")
    for name in (into, error):
        if name in df.columns or into == error:
            raise ValueError(f"there is already a column '{name}': choose another name with into= and error=")


def _check_schema(given: GivenSchema, format: str) -> None:
    if given.schema is None:
        raise ValueError("decode needs schema=, the schema of the column that it makes")
    if given.message is not None and format != "protobuf":
        raise ValueError("message= is for format protobuf")
    if given.folder is not None and not (format == "avro" and given.framed):
        raise ValueError("schemas= is for format avro with framing confluent")
    if format == "avro" and given.framed and given.folder is None:
        raise ValueError("framing confluent needs schemas=FOLDER: Avro is read with the schema that wrote it")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', 2 * '`')}`"
