"""Records for a topic from a file: lines of JSON, as `barnabas produce -f json` takes them, and `consume -f json` and an export write them.

A file is written whole, in one transaction, or not at all: a line that is wrong rejects it.
"""

from __future__ import annotations

from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import Given
from barnabas.console.changes.several_records import planned_records, read_records
from barnabas.console.page import Field

FILE_BYTES_MAX = 8 << 20
_PLACES = (("file", "as the file says"), ("key", "by their keys"))
FIELDS = (
    Field("topic", "Topic", is_required=True),
    Field(
        "file", "File with a line of JSON for each record; 8 MB at most", kind="file", is_required=True, is_private=True
    ),
    Field("partitions", "Partitions are chosen", "file", "choice", _PLACES),
)


def production(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan the records of a file."""
    name = given.required("topic", "the topic")
    by_key = bool(given.text("partitions")) and given.choice("partitions", "how", dict(_PLACES)) == "key"
    records, notes = read_records(given.file("file", "the file").data, "the file")
    others = {each.topic for each in records} - {None, name}
    if others:
        notes.append(f"some lines name another topic: all records go to {name}")
    if by_key:
        records = [each._replace(partition=None) for each in records]
    return planned_records(admin, name, records, notes)
