"""The form of a record, filled in from one that is there: "again, with changes".

The form is filled from the cluster, not from its address, so that no key and no value is in a proxy's log. What a mask hides is left
out. So is what a form cannot bring back as it was: the form says which.
"""

from __future__ import annotations

import base64
from urllib.parse import quote_plus

from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.changes.change import Filled
from barnabas.console.guard import BODY_BYTES_MAX
from barnabas.console.pages.record import named_record
from barnabas.console.search.query import BadQuery
from barnabas.decoding.masks import TopicMask
from barnabas.records.record import Record
from barnabas.words.printable import printable

_OTHER_FIELDS_BYTES = 4_096


def filled(admin: Admin, asked: Asked) -> Filled:
    """Return the fields of a record that the address names by `topic`, `partition` and `offset`; those of the address if it names none.

    Raises:
        BadQuery: there is no such record, or it is a marker of a transaction.
        KafkaError: the topic does not exist, or no broker answers.
    """
    if not asked.query.get("offset"):
        return Filled(dict(asked.query), [])
    query, found, sentences = named_record(admin, asked)
    if found is None:
        raise BadQuery(" ".join(["There is no record at this offset.", *sentences]))
    if found.batch.is_control:
        raise BadQuery("The record is the marker of a transaction.")
    texts, notes = fields_of(found.record, asked.cluster.decoder.masks.of(query.topic))
    return Filled({"topic": query.topic, **texts}, notes)


def fields_of(record: Record, mask: TopicMask | None) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a form that writes a record again, and sentences about what is not in them."""
    texts: dict[str, str] = {}
    notes: list[str] = []
    if mask is not None and mask.key:
        notes.append("This console masks the key: it is left out")
    elif record.key:
        texts["key"], texts["key_as"] = _written(record.key, lines=False)
    elif record.key is not None:
        notes.append("The key is empty, and this form writes null in its place")
    if record.value is None:
        texts["tombstone"] = "1"
    elif mask is not None and mask.value:
        notes.append("This console masks the value: it is left out")
    else:
        texts["value"], texts["value_as"] = _written(record.value, lines=True)
    lines = []
    for name, value in record.headers:
        line = _header(name, value)
        if mask is not None and mask.hides_header(name):
            notes.append(f"This console masks the header {printable(name)}: it is left out")
        elif line is None:
            notes.append(f"The header {printable(name)} is no line of text: it is left out")
        else:
            lines.append(line)
    if lines:
        texts["headers"] = "\n".join(lines)
    for name in ("value", "headers", "key"):
        if sum(len(quote_plus(each)) for each in texts.values()) > BODY_BYTES_MAX - _OTHER_FIELDS_BYTES:
            notes.append(f"The record is too large for a form: the {name} is left out")
            texts.pop(name, None)
    return texts, notes


def _written(data: bytes, *, lines: bool) -> tuple[str, str]:
    """Return bytes as a field has them, and the name of the form in which they are written."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"
    # A browser sends every end of a line as another one, and may drop control characters.
    plain = text.replace("\n", "").replace("\t", "") if lines else text
    return (text, "text") if plain.isprintable() else (base64.b64encode(data).decode(), "base64")


def _header(name: str, value: bytes | None) -> str | None:
    if not name or "=" in name or not name.isprintable() or not name.strip():
        return None
    if value is None:
        return name
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return f"{name}={text}" if text.isprintable() else None
