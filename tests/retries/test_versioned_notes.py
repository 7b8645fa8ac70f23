"""A note is read by the version that wrote it, or not at all."""

from __future__ import annotations

import pytest

from barnabas.retries.versioned_notes import read, written


def test_a_note_has_its_fields_and_no_other_version_is_read() -> None:
    value = written({"next": 7, "source": "orders"})
    assert value.startswith(b'{"version": 1, ')
    assert read(value, "replay copy") == {"next": 7, "source": "orders"}
    with pytest.raises(ValueError, match="replay copy was begun by another version of barnabas: use that one"):
        read(value.replace(b'"version": 1', b'"version": 2'), "replay copy")
