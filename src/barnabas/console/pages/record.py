"""One record: all of its value, its headers, and what its batch says."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cli.output import Table, json_name
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.page import Link, Page, Section, failed_section, grid
from barnabas.console.records import decoded, details_of, object_of, record_link, time_text
from barnabas.console.search.fetched import Found
from barnabas.console.search.guess import formats_of
from barnabas.console.search.query import BadQuery, Query
from barnabas.console.search.search import run
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoded import Decoded
from barnabas.decoding.decoder import SHOWN_BYTES
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable

ALL_BYTES_MAX = 1_000_000
"""A page is not made of more; the bytes themselves can be loaded in any case."""


class NamedRecord(NamedTuple):
    """A record that an address names; without one, the sentences say why."""

    query: Query
    found: Found | None
    sentences: list[str]


def named_record(admin: Admin, asked: Asked) -> NamedRecord:
    """Return the record of an address.

    Raises:
        BadQuery: the address names none.
        KafkaError: the topic does not exist, or no broker answers.
    """
    offset = asked.query.get("offset", "")
    if not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
        raise BadQuery("The address names no offset.")
    given = {
        "topic": asked.query.get("topic", ""),
        "partitions": asked.query.get("partition", ""),
        "offset": f"{offset}:{int(offset) + 1}",
        "limit": "1",
        "order": "oldest",
        "isolation_level": "read_uncommitted",
        "control": "1",
        "key_as": asked.query.get("key_as", ""),
        "value_as": asked.query.get("value_as", ""),
    }
    query = Query.of(given)
    if len(query.partitions) != 1:
        raise BadQuery("The address names no partition.")
    outcome = run(admin, query, asked.cluster.decoder, asked.now_ms)
    found = outcome.found[0] if outcome.found else None
    return NamedRecord(formats_of(query, asked.cluster.decoder, outcome.found), found, verdict_of(outcome).sentences)


async def record(asked: Asked) -> Page:
    """Make the page of a record: `topic`, `partition`, `offset`, how it is decoded, and `all` for the whole of it."""
    title = "Record"
    try:
        query, found, sentences = await asked.cluster.search(lambda admin: named_record(admin, asked))
    except BadQuery as error:
        return Page(title, [_missing(str(error))], is_missing=True)
    except KafkaError as error:
        return Page(title, [failed_section("record", title, error, f"topic {asked.query.get('topic', '')}")])
    if found is None:
        return Page(title, [_missing("There is no record at this offset.", sentences)], is_missing=True)
    most = ALL_BYTES_MAX if asked.query.get("all") == "1" else SHOWN_BYTES
    key, value = decoded(found, query, asked.cluster.decoder, most)
    sections = [
        _facts(asked, found, query, key, value),
        _part(asked, found, query, "value", value),
        _part(asked, found, query, "key", key),
        _headers(found),
    ]
    where = f"{query.topic}-{found.partition}"
    return Page(f"Record {found.record.offset} of {where}", sections)


def _missing(sentence: str, notes: list[str] | None = None) -> Section:
    return Section("record", "Record", {"error": sentence}, sentence=sentence, is_failed=True, notes=notes or ())


def _facts(asked: Asked, found: Found, query: Query, key: Decoded, value: Decoded) -> Section:
    record, batch = found.record, found.batch
    facts = {
        "TOPIC": query.topic,
        "PARTITION": found.partition,
        "OFFSET": record.offset,
        "TIME": None if record.timestamp < 0 else time_text(record.timestamp),
        "TIME-IS-OF": "the broker" if batch.is_log_append_time else "the producer",
        "KEY-BYTES": key.size,
        "VALUE-BYTES": value.size,
        **{name.upper().replace("_", "-"): each for name, each in details_of(found).items()},
        "BATCH-FROM": batch.base_offset,
        "BATCH-TO": batch.last_offset,
        "BATCH-RECORDS": batch.record_count,
        "BATCH-BYTES": batch.size,
    }
    data = object_of(found, query, asked.cluster.decoder)
    more = {json_name(name): each for name, each in facts.items() if name.startswith("BATCH")}
    table = Table(tuple(facts), [tuple(facts.values())], vertical=True)
    topic = Link("The topic", asked.topic_link(query.topic))
    around = Link(
        "Records from here on",
        asked.link("messages", topic=query.topic, partitions=found.partition, offset=record.offset, order="oldest"),
    )
    return Section(
        "record", "Where and how", {**data, **more}, [grid(table, "Where and how", {})], links=[topic, around]
    )


def _part(asked: Asked, found: Found, query: Query, name: str, part: Decoded) -> Section:
    heading = name.capitalize()
    data = {"format": part.format, "bytes": part.size, "cut": part.is_cut, "note": part.note}
    if part.format == "null":
        return Section(name, heading, data, sentence=f"The {name} is null.")
    sentence = f"{part.format}, {part.size} bytes"
    if part.is_cut:
        sentence += ", of which these are the first"
    if part.note is not None:
        sentence += f". Shown so, because {part.note}"
    links = []
    if part.is_cut and asked.query.get("all") != "1":
        links.append(Link("Load all", record_link(asked, found, query, all=1)))
    address = asked.link(
        "record/raw", topic=query.topic, partition=found.partition, offset=found.record.offset, part=name
    )
    links.append(Link("The bytes as a file", address))
    lines = [printable(line) if not line.isprintable() else line for line in part.text.split("\n")]
    return Section(name, heading, data, sentence=f"{sentence}.", written="\n".join(lines), links=links)


def _headers(found: Found) -> Section:
    headers = found.record.headers
    if not headers:
        return Section("headers", "Headers", [], sentence="It has no headers.")
    rows = []
    for name, value in headers:
        try:
            rows.append((name, None if value is None else value[:SHOWN_BYTES].decode(), "text"))
        except UnicodeDecodeError:
            assert value is not None
            rows.append((name, value[:SHOWN_BYTES].hex(), "hex"))
    table = Table(("NAME", "VALUE", "FORMAT"), rows)
    return Section("headers", "Headers", table.objects(), [grid(table, "Headers", {})])
