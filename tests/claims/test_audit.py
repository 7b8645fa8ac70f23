"""What an audit finds; `tests/cli/test_claims.py` has it against a broker."""

from __future__ import annotations

import pytest

from barnabas.claims.audit import audit
from barnabas.claims.claim import HEADER
from barnabas.claims.payloads import store_payload
from barnabas.claims.sweep import TopicRecord
from tests.claims.memory_store import MemoryStore


@pytest.mark.parametrize("sizes_only", [False, True])
def test_only_a_thousand_errors_are_kept(sizes_only: bool) -> None:
    store = MemoryStore()
    there = store_payload(store, "c/t", b"there").encoded()
    gone = store_payload(MemoryStore(), "c/t", b"gone").encoded()
    mark = [(HEADER, b"1")]
    records: list[TopicRecord] = [("t", 0, offset, mark, gone) for offset in range(1500)]
    records += [("t", 0, 1500, mark, there), ("t", 0, 1501, [], b"small"), ("t", 0, 1502, mark, None)]
    found = audit(store, iter(records), sizes_only=sizes_only)
    assert (found.records, found.claims, found.wrong, found.payload_bytes) == (1503, 1501, 1500, 5)
    assert [each.offset for each in found.errors] == list(range(1000))
