"""One sink's records in the topic of decisions, read in order up to a claim.

    NAME         a decision; it counts if its transaction is committed
    NAME/claim   no value; the header `token` tells one claim from another
    NAME/done    {"version": 2, "batch": 17}: the transactions of this batch's decision are committed

A driver claims when the transactions of all earlier drivers are complete, so the marker of each decision stands before
the claim. What comes behind the claim was written by a driver that claimed later, and is left to that driver.

Invariants:

- A decision without a marker is committed: compaction may remove a marker, but that of an aborted transaction only
  after its records.
- `done` counts without a transaction. It stays true, also if a driver that was stopped for long writes it.
"""

from __future__ import annotations

import json

from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import iter_batches

TOKEN = "token"


def claim_key(name: str) -> bytes:
    """Return the key of a sink's claims."""
    return f"{name}/claim".encode()


def done_key(name: str) -> bytes:
    """Return the key of a sink's record that its decision is carried out."""
    return f"{name}/done".encode()


class DecisionScan:
    """The last decision of a sink before a claim, as far as the records were added.

    Attributes:
        done: the last batch whose transactions are committed, -1 if no record says so.
        is_complete: whether the claim was among the records.
    """

    def __init__(self, name: str, token: bytes) -> None:
        self.done = -1
        self.is_complete = False
        self._name = name.encode()
        self._claim_key, self._done_key = claim_key(name), done_key(name)
        self._token = token
        self._decisions: list[tuple[int, bytes | None]] = []

    def __repr__(self) -> str:
        return f"<DecisionScan name={self._name.decode()} done={self.done} is_complete={self.is_complete}>"

    @property
    def decision(self) -> bytes | None:
        """Return the last decision's value, or None if the sink has decided nothing."""
        return self._decisions[-1][1] if self._decisions else None

    def add(self, records: memoryview, offset: int) -> int:
        """Read batches, and return the offset behind them."""
        for position, header in iter_batches(records):
            offset = max(offset, header.next_offset)
            for record in iter_records(records, position, header=header):
                if self.is_complete:
                    break
                if not header.is_control:
                    self._add(record, header.producer_id)
                elif control_type(record.key) is ControlRecordType.ABORT:
                    self._decisions = [each for each in self._decisions if each[0] != header.producer_id]
                else:
                    self._decisions = [(-1, v) if p == header.producer_id else (p, v) for p, v in self._decisions]
        return offset

    def _add(self, record: Record, producer_id: int) -> None:
        if record.key == self._name:
            self._decisions.append((producer_id, record.value))
        elif record.key == self._done_key and record.value is not None:
            self.done = max(self.done, json.loads(record.value)["batch"])
        elif record.key == self._claim_key:
            self.is_complete = (TOKEN, self._token) in [(name, bytes(value or b"")) for name, value in record.headers]
