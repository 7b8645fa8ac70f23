"""Keys and values as text: Arrow strings instead of binaries.

Arrow checks that each one is UTF-8. One that is not is an error that names its record, because a replaced letter would
change what a query counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

TEXT_COLUMNS = ("key", "value")


class NotText(ValueError):
    """A key or value is not UTF-8; the message names the record."""


def text_schema(schema: pa.Schema, texts: Iterable[str]) -> pa.Schema:
    """Return the schema with some columns as strings."""
    wanted = set(texts)
    return pa.schema([field.with_type(pa.string()) if field.name in wanted else field for field in schema])


def as_text(rows: pa.RecordBatch, texts: Iterable[str], topic: str, partition: int) -> pa.RecordBatch:
    """Return the rows with some columns as strings.

    Args:
        rows: with the column `offset`.
        texts: columns of `rows`.

    Raises:
        NotText: a row's bytes are not UTF-8.
    """
    for name in texts:
        at = rows.schema.get_field_index(name)
        try:
            text = rows.column(at).cast(pa.string())
        except pa.ArrowInvalid:
            offset = _first_not_text(rows.column(at), rows.column("offset"))
            raise NotText(f"the {name} at offset {offset} of {topic}-{partition} is not UTF-8") from None
        rows = rows.set_column(at, name, text)
    return rows


def _first_not_text(column: pa.Array, offsets: pa.Array) -> int:
    for value, offset in zip(column, offsets, strict=True):
        try:
            (value.as_py() or b"").decode()
        except UnicodeDecodeError:
            return int(offset.as_py())
    raise AssertionError("Arrow and Python disagree about UTF-8")
