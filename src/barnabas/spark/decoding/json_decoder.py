"""Decodes JSON by Spark's own `from_json`.

In its permissive mode `from_json` keeps the text of a bad row in a column of its own, and what it can read in the
other columns. The error names the fields that it could not read.

With a source of schemas, each value is checked before by the JSON Schema that wrote it, as Confluent's deserializer does; `jsonschema`
checks. What does not hold is a bad row, whether the column could have it or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from barnabas.schemas.schema import JSON
from barnabas.schemas.source import SchemaSource
from barnabas.spark.decoding.confluent_frame import FRAME_BYTES
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import DecodedColumn
from barnabas.spark.plain_errors import plain_errors

__all__ = ["column", "json_type"]

_CORRUPT = "_corrupt_record"
_END = 2_147_483_647


def column(value: Column, given: GivenSchema) -> DecodedColumn:
    """Return how a column of bytes is decoded.

    Raises:
        ValueError: the schema is not valid.
    """
    kind = _given_type(given)
    body = F.substring(value, FRAME_BYTES + 1, _END) if given.framed else value
    text = body.cast("string")
    with_corrupt = StructType([*kind.fields, StructField(_CORRUPT, StringType())])
    parse = F.from_json(text, with_corrupt, {"columnNameOfCorruptRecord": _CORRUPT})
    check = F.lit(None).cast("string") if given.source is None else _checked(value, given.source)
    both = F.struct(parse.alias("parsed"), check.alias("why"))

    def split(both: Column) -> tuple[Column, Column]:
        parsed = both["parsed"]
        bad = F.coalesce(both["why"], F.when(parsed.isNull(), F.lit("the value is empty")))
        if given.framed:
            is_framed = (F.octet_length(value) >= FRAME_BYTES) & (F.hex(F.substring(value, 1, 1)) == "00")
            bad = F.when(~is_framed, F.lit("the value has no schema id in front")).otherwise(bad)
        bad = F.coalesce(bad, F.when(parsed[_CORRUPT].isNotNull(), _misfit(text, parsed, kind)))
        error = F.when(value.isNotNull(), bad)
        decoded = F.struct(*(parsed[each.name].alias(each.name) for each in kind.fields))
        return F.when(value.isNotNull() & error.isNull(), decoded), error

    return DecodedColumn(both, split)


def _given_type(given: GivenSchema) -> StructType:
    if given.schema is not None:
        return json_type(given.value())
    schemas = import_module("barnabas.spark.decoding.json_schemas")
    registered = given.registered(JSON)
    return schemas.json_schema_type(schemas.json_schema_of(given.schemas(), registered.schema))  # type: ignore[no-any-return]


def _checked(value: Column, source: SchemaSource) -> Column:
    """Return why each value is not one of the schema that wrote it; null if it is."""
    import_module("barnabas.spark.decoding.json_checks").json_check(
        source
    )  # an error is raised here, not on an executor

    def check_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with plain_errors():
            check = import_module("barnabas.spark.decoding.json_checks").json_check(source)
            for batch in batches:
                yield pa.array([check(each) for each in batch.to_pylist()], pa.string())

    # Spark reads the kind of function from its hints, which are text here.
    check_batches.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return arrow_udf(check_batches, StringType())(value)  # type: ignore[call-overload, no-any-return]


def _misfit(text: Column, parsed: Column, kind: StructType) -> Column:
    fields = F.concat_ws(", ", *(_unread(text, parsed, each.name) for each in kind.fields))
    return (
        F.when(F.try_parse_json(text).isNull(), F.lit("the value is not JSON"))
        .when(fields != "", F.concat(F.lit("the value does not fit the schema: "), fields))
        .otherwise(F.lit("the value is not a JSON object"))
    )


def _unread(text: Column, parsed: Column, name: str) -> Column:
    """Return the name of a field that the JSON has and the parsed struct has not; null if there is none."""
    path = "$['" + name.replace("'", "\\'") + "']"
    return F.when(parsed[name].isNull() & F.get_json_object(text, path).isNotNull(), F.lit(name))


def json_type(schema: Any) -> StructType:
    """Return the type that a schema names: DDL, a StructType, or either as the content of a file.

    Raises:
        ValueError: it is not valid.
    """
    text = schema.decode(errors="replace") if isinstance(schema, bytes) else schema
    if isinstance(text, str):
        text = text.strip()
        try:
            schema = StructType.fromJson(json.loads(text)) if text.startswith("{") else DataType.fromDDL(text)
        except Exception as error:  # of Spark's parser, and of the session that it may begin
            reason = next(iter(str(error).strip().splitlines()), "it cannot be parsed")
            raise ValueError(f"the schema is neither DDL nor the JSON of a StructType: {reason}") from None
    if not isinstance(schema, StructType):
        raise ValueError("the schema of format json is DDL such as 'id bigint, name string', or a StructType")
    if _CORRUPT in schema.names:
        raise ValueError(f"leave {_CORRUPT} out of the schema: decode has a column for errors")
    return schema
