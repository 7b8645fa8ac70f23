"""`decode`: its arguments, and a topic whose schema evolves across a restart of a query."""

from __future__ import annotations

import io
import json
import struct
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest

from barnabas.spark import decode, start
from tests.spark.messages import F, descriptor_set, message
from tests.spark.session import SPARK


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"format": "jsn", "schema": "a int"}, "format 'jsn' is not one of json, avro, protobuf; did you mean json?"),
        ({"framing": "Confluent"}, "framing 'Confluent' is not one of plain, confluent; did you mean confluent?"),
        ({"column": "valeu"}, "there is no column 'valeu'; did you mean value?"),
        ({"into": "key", "schema": "a int"}, "there is already a column 'key'"),
        ({"into": "a", "error": "a", "schema": "a int"}, "there is already a column 'a'"),
        ({}, "decode needs schema= or subject="),
        ({"subject": "s"}, "subject= needs schemas="),
        ({"schema": "a int", "message": "M"}, "message= is for format protobuf"),
        ({"schema": "a int", "schemas": "s"}, "schemas= is for framing confluent"),
        ({"schema": "{}", "format": "avro", "schemas": "s"}, "schemas= is for framing confluent"),
        ({"schema": "{}", "format": "avro", "framing": "confluent"}, "framing confluent needs schemas="),
    ],
    ids=str,
)
def test_arguments_that_do_not_do(arguments, error):
    with pytest.raises(ValueError) as refused:
        decode(SimpleNamespace(columns=["key", "value"]), **arguments)  # type: ignore[arg-type]
    assert str(refused.value).startswith(error)


def record(**fields: Any) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Order", "fields": listed}


class Version:
    """One version of the schema of orders: what a producer writes, and what a query decodes."""

    def __init__(self, number: int, ddl: str, avro: dict[str, Any], **fields: Any) -> None:
        self.number = number
        self.ddl = ddl
        self.avro = avro
        self.protobuf = descriptor_set(message("Order", **fields))

    def records(self, **order: Any) -> list[dict[str, Any]]:
        """Return an order in each format, as records; the key is the format's name."""
        avro = io.BytesIO()
        fastavro.schemaless_writer(avro, fastavro.parse_schema(self.avro), order)
        number = order["id"]
        field, text = (2, order["note"]) if "note" in order else (3, order["country"])
        protobuf = b"\x08" + varint(number) + bytes([field << 3 | 2, len(text)]) + text.encode()
        frame = struct.pack(">bi", 0, self.number)
        values = {"json": json.dumps(order).encode(), "avro": avro.getvalue(), "protobuf": b"\0" + protobuf}
        return [{"key": name, "value": frame + value} for name, value in values.items()]


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


OLD = Version(1, "id int, note string", record(id="int", note="string"), id=(1, F.TYPE_INT32), note=(2, F.TYPE_STRING))
# The id is wider, the note is gone, the country is new.
NEW = Version(
    2,
    "id bigint, country string",
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "country", "type": "string", "default": "??"}],
    },
    id=(1, F.TYPE_INT64),
    country=(3, F.TYPE_STRING),
)
BAD = [{"key": name, "value": b"\0\0\0\0\x01" + b"\xff" * 12} for name in ("json", "avro", "protobuf")]
FORMATS = ("json", "avro", "protobuf")


class TestWithSpark:
    pytestmark = SPARK

    @pytest.mark.conform
    def test_a_schema_evolves_across_a_restart(self, spark, topics, tmp_path):
        topic = topics.create()
        folder = tmp_path / "schemas"
        folder.mkdir()

        def run(version: Version) -> list[Any]:
            """Restart the query with a version of the schema; return the rows of this run."""
            (folder / f"{version.number}.avsc").write_text(json.dumps(version.avro))
            reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", topics.servers)
            rows = reader.options(subscribe=topic, startingOffsets="earliest").load()
            by_format = [f"if(cast(key as string) = '{name}', value, null) as {name}" for name in FORMATS]
            rows = rows.selectExpr("offset", *by_format)
            schemas: dict[str, Any] = {"json": version.ddl, "avro": version.avro, "protobuf": version.protobuf}
            for name in FORMATS:
                more = {"schemas": folder} if name == "avro" else {}
                names = {"into": f"{name}_order", "error": f"{name}_error"}
                rows = decode(rows, name, name, schemas[name], framing="confluent", **names, **more)
            found: list[Any] = []
            writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            query = start(
                writer.trigger(availableNow=True).foreachBatch(lambda batch, _: found.extend(batch.collect()))
            )
            query.awaitTermination()
            assert query.exception() is None
            return sorted(found, key=lambda row: row.offset)

        topics.produce(topic, [*OLD.records(id=1, note="x"), *BAD])
        assert outcomes(run(OLD)) == [{"id": 1, "note": "x"}] * 3 + [
            "the value is not JSON",
            "the value is not of the schema: it ends too early (schema 1)",
            "the value has no message indexes behind the schema id",
        ]
        # The producers follow one by one: the old schema is still in use after the new one.
        topics.produce(topic, [*NEW.records(id=2**40, country="FR"), *OLD.records(id=3, note="y"), *BAD])
        assert outcomes(run(NEW)) == [{"id": 2**40, "country": "FR"}] * 3 + [
            {"id": 3, "country": None},
            {"id": 3, "country": "??"},
            {"id": 3, "country": ""},
            "the value is not JSON",
            "the value is not of the schema: it ends too early (schema 1)",
            "the value has no message indexes behind the schema id",
        ]


def outcomes(rows: list[Any]) -> list[dict[str, Any] | str]:
    """Return each row's order or error, in the one format that it has; the others have neither."""
    found: list[dict[str, Any] | str] = []
    for row in rows:
        (each,) = [
            row[f"{name}_error"] or row[f"{name}_order"].asDict()
            for name in FORMATS
            if row[f"{name}_error"] or row[f"{name}_order"]
        ]
        found.append(each)
    return found
