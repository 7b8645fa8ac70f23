"""`encode`: its arguments, and rows through Spark to bytes and back by way of a registry."""

from __future__ import annotations

import datetime
import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types

from barnabas.spark import decode, encode
from barnabas.spark.decoding.protobuf_decoder import protobuf_type
from tests.schemas.registry_server import running_registry
from tests.spark.messages import F, descriptor_set, message
from tests.spark.session import SPARK

FIELDS = types.StructType([types.StructField("id", types.LongType()), types.StructField("note", types.StringType())])
DF = SimpleNamespace(columns=["id", "note", "all"], schema={"id": FIELDS["id"], "note": FIELDS["note"]})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"format": "avor"}, "format 'avor' is not one of avro, json, protobuf; did you mean avro?"),
        ({"framing": "plane"}, "framing 'plane' is not one of plain, confluent; did you mean plain?"),
        ({"columns": ["note", "if"]}, "there is no column 'if'"),
        ({"columns": []}, "encode needs the names of columns"),
        ({"into": "id"}, "there is already a column 'id'"),
        ({"message": "M"}, "message= is for format protobuf"),
        ({}, "framing confluent needs schemas="),
        ({"framing": "plain"}, "framing plain needs schema="),
        ({"framing": "plain", "schema": "{}", "schemas": "s"}, "schemas= is for framing confluent"),
        ({"schemas": "s", "auto_register": True}, "auto_register= needs schema="),
        ({"schemas": "s", "strategy": "RecordName"}, "the strategy RecordName takes the record's name from schema="),
        ({"schemas": "http://h", "topic": "t", "part": "body"}, "part 'body' is not one of key, value"),
        ({"schemas": "http://h"}, "the strategy TopicName needs topic="),
    ],
    ids=str,
)
def test_arguments_that_do_not_do(arguments, error):
    with pytest.raises(ValueError) as refused:
        encode(DF, **{"columns": ["id"], **arguments})  # type: ignore[arg-type]
    assert str(refused.value).startswith(error)


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
JSON = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": ["string", "null"]}, "at": {"type": "string"}},
    "required": ["id", "note"],
}
PROTOBUF = descriptor_set(
    message(
        "Order",
        id=(1, F.TYPE_INT32, "optional"),
        note=(2, F.TYPE_STRING, "optional"),
        at=(3, ".google.protobuf.Timestamp"),
    ),
    dependencies=("google/protobuf/timestamp.proto",),
)
AT = datetime.datetime(2026, 11, 24, 12, 30, tzinfo=datetime.UTC)


class TestWithSpark:
    pytestmark = SPARK

    @pytest.mark.conform
    def test_rows_in_all_formats_and_back(self, spark):
        """In a session whose time zone is not that of the values."""
        rows = "values (1, 'x', timestamp'2026-11-24 12:30:00Z'), (2, null, timestamp'2026-11-24 12:30:00Z'), (null, 'bad', null)"
        zone = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        try:
            with running_registry() as registry:
                source = {"url": registry.url, "max.retries": 0}
                df = spark.sql(f"select * from {rows} as t(id, note, at)").coalesce(
                    1
                )  # one Python worker for each function
                schemas: dict[str, Any] = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}
                for name, schema in schemas.items():
                    names = {"into": name, "error": f"{name}_error"}
                    df = encode(
                        df, ["id", "note", "at"], name, schema, schemas=source, topic=name, auto_register=True, **names
                    )
                asked = [each for each in registry.requests if each.startswith("POST")]
                assert len(asked) == 3  # by the driver, before the first row
                df = spark.createDataFrame(df.collect(), df.schema).coalesce(1)
                for name in schemas:
                    df = decode(
                        df, name, name, framing="confluent", schemas=source, subject=f"{name}-value", into=f"{name}_row",
                        error=f"{name}_why",
                    )  # fmt: skip
                found = [row.asDict(recursive=True) for row in df.collect()]
                assert sorted(registry.subjects) == ["avro-value", "json-value", "protobuf-value"]
        finally:
            spark.conf.set("spark.sql.session.timeZone", zone)
        good, null, bad = found
        moment = good["at"]
        assert good["avro_row"] == good["protobuf_row"] == {"id": 1, "note": "x", "at": moment}
        assert null["avro_row"] == null["protobuf_row"] == {"id": 2, "note": None, "at": moment}
        assert datetime.datetime.fromisoformat(good["json_row"]["at"]) == AT
        assert json.loads(null["json"][5:])["note"] is None
        assert bad["avro_error"].startswith("the row is not of the schema: ")
        assert bad["json_error"] == "the row is not of the schema: id: None is not of type 'integer'"
        assert (bad["avro"], bad["avro_row"], bad["avro_why"]) == (None, None, None)
        assert bad["protobuf_row"] == {"id": None, "note": "bad", "at": None}
        assert protobuf_type(PROTOBUF, None).names == ["id", "note", "at"]

    def test_bad_rows_name_the_schema_and_a_registry_that_is_away_fails_the_query(self, spark):
        with running_registry() as registry:
            registry.add("orders-value", {**AVRO, "fields": AVRO["fields"][:1]})
            frames = ["00000000012A", "000000000954", "0000000001", None]
            values = ", ".join(f"(unhex('{each}'))" if each else "(null)" for each in frames)
            df = spark.sql(f"select * from values {values} as t(value)").coalesce(1)
            arguments: Any = {
                "format": "avro",
                "framing": "confluent",
                "schemas": {"url": registry.url, "max.retries": 0},
            }
            decoded = decode(df, subject="orders-value", **arguments)
            found = [(row.decoded and row.decoded.id, row.error) for row in decoded.collect()]
            assert found == [
                (21, None),
                (None, f"{registry.url} does not have schema 9 (40403: Schema 9 not found)"),
                (None, "the value is not of the schema: it ends too early (schema 1)"),
                (None, None),
            ]
            later = decode(
                spark.sql("select unhex('000000000754') as value"),
                schema={**AVRO, "fields": AVRO["fields"][:1]},
                **arguments,
            )
        with pytest.raises(Exception, match="the schema registry does not answer"):
            later.collect()
        with pytest.raises(ValueError, match="the schema registry does not answer"):
            decode(df, schema=AVRO, **arguments)
