"""A record for a topic, as `barnabas produce` writes it: with a key, headers, a partition, or null as its value."""

from __future__ import annotations

import base64
import binascii
import secrets
from functools import partial

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure
from barnabas.cli.output import Found, Table, json_name
from barnabas.cli.record_format import Shown, json_object
from barnabas.cli.record_reader import parse_header
from barnabas.client.admin import Admin, TopicMetadata, TopicPartition
from barnabas.client.partition_records import append_batch
from barnabas.client.partitioner import DEFAULT_PARTITIONER, LIBRARY_DEFAULTS, PARTITIONERS, partition_for
from barnabas.client.producer_transactions import init_producer_id
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.topics import described
from barnabas.console.page import Field
from barnabas.records.builder import build_batch
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms, parse_time_ms

_ENCODINGS = (("text", "text"), ("hex", "hex"), ("base64", "base64"))
_PARTITIONERS = tuple(
    (each, f"{each} ({users})" if (users := LIBRARY_DEFAULTS.get(each)) else each) for each in PARTITIONERS
)
_COLUMNS = ("TOPIC", "PARTITION", "OFFSET", "TIME", "KEY", "VALUE", "HEADERS")
FIELDS = (
    Field("topic", "Topic", is_required=True),
    Field("key", "Key; empty for none", is_private=True),
    Field("key_as", "The key is written as", "text", "choice", _ENCODINGS),
    Field("value", "Value", kind="lines", is_private=True),
    Field("value_as", "The value is written as", "text", "choice", _ENCODINGS),
    Field("tombstone", "The value is null: in a compacted topic this deletes the key", kind="box"),
    Field("headers", "Headers, a line each", kind="lines", hint="NAME=VALUE", is_private=True),
    Field("partition", "Partition", hint="where the key belongs"),
    Field("partitioner", "Keys are placed as by", DEFAULT_PARTITIONER, "choice", _PARTITIONERS),
    Field("timestamp", "Time", hint="now; or 2026-11-21T10:00:00"),
)


def production(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan a record; the preview fixes its partition, and the time unless it is the present."""
    name = given.required("topic", "the topic")
    key = _bytes(given, "key") if given.text("key") else None
    if given.is_ticked("tombstone") and given.text("value"):
        raise BadForm("a record whose value is null has no value: leave one of the two out")
    value = None if given.is_ticked("tombstone") else _bytes(given, "value")
    try:
        headers = [parse_header(line) for line in given.lines("headers")]
        time_text = given.text("timestamp").strip()
        timestamp = parse_time_ms(time_text, now_ms) if time_text else None
        format_time_ms(now_ms if timestamp is None else timestamp)
    except (ValueError, OverflowError) as error:
        raise BadForm(str(error)) from None
    topic = described(admin, name)
    partition = _partition(given, topic, key)
    record = Shown(name, partition, -1, now_ms if timestamp is None else timestamp, key, value, headers)
    return Planned(
        f"Produce a record to topic {printable(name)}",
        f"topic {name}",
        _done(record, is_written=False),
        lambda admin, _: _done(_written(admin, record), is_written=True),
        fixed={"partition": str(partition), **({} if timestamp is None else {"timestamp": str(timestamp)})},
        after=("topic", {"name": name}),
    )


def _bytes(given: Given, name: str) -> bytes:
    text, written_as = given.text(name), given.text(f"{name}_as") or "text"
    try:
        if written_as == "hex":
            return bytes.fromhex(text)
        if written_as == "base64":
            return base64.b64decode("".join(text.split()), validate=True)
    except (ValueError, binascii.Error):
        raise BadForm(f"the {name} is not {written_as}") from None
    return text.encode()


def _partition(given: Given, topic: TopicMetadata, key: bytes | None) -> int:
    chosen = given.number("partition", "the partition")
    count = len(topic.partitions)
    if chosen is not None:
        if chosen >= count:
            raise Failure(f"topic {topic.name} has no partition {chosen}", f"it has {count}, from 0 on")
        return chosen
    partitioner = (
        given.choice("partitioner", "the partitioner", PARTITIONERS)
        if given.text("partitioner")
        else DEFAULT_PARTITIONER
    )
    found = partition_for(key, count, partitioner)
    return secrets.randbelow(count) if found is None else found


def _written(admin: Admin, record: Shown) -> Shown:
    """Append a record, once however often the request is repeated.

    Raises:
        KafkaError: the leader does not append it.
    """
    producer = init_producer_id(admin.cluster, None, 60_000, timeout_ms=admin.cluster.timeout_ms)
    batch = build_batch(
        [(record.timestamp, record.key, record.value, record.headers)],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
    )
    where = TopicPartition(record.topic, record.partition)
    offset = admin.cluster.retry(partial(append_batch, admin.cluster, where, bytes(batch)))
    return record._replace(offset=offset)


def _done(record: Shown, *, is_written: bool) -> Done:
    status = "produced" if is_written else "would be produced"
    data = {**json_object(record), "status": status}
    if not is_written:
        del data["offset"], data["timestamp"]
    cells = {
        "TOPIC": record.topic,
        "PARTITION": record.partition,
        "OFFSET": record.offset,
        "TIME": format_time_ms(record.timestamp),
        "KEY": words_of(record.key),
        "VALUE": words_of(record.value),
        "HEADERS": [f"{name}={words_of(value)}" for name, value in record.headers],
    }
    columns = [each for each in _COLUMNS if is_written or each not in ("OFFSET", "TIME")]
    table = Table((*columns, "STATUS"), [(*(cells[each] for each in columns), status)], vertical=True)
    assert json_name("STATUS") in data, data
    return Done(Found([data], [table]))


def words_of(data: bytes | None) -> str:
    """Return a key, value or header for a preview: text, hex if it is not UTF-8, or null."""
    if data is None:
        return "null"
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex()
