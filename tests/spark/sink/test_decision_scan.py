"""Records of the topic of decisions, in the order in which a driver reads them."""

from __future__ import annotations

from typing import Any

from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.spark.sink.decision_scan import TOKEN, DecisionScan, claim_key, done_key


class Log:
    """Batches of one record each."""

    def __init__(self) -> None:
        self.data = b""
        self.end = 0

    def put(self, key: bytes, value: bytes | None, producer: int = -1, token: bytes | None = None) -> None:
        headers: Any = [] if token is None else [(TOKEN, token)]
        how = {} if producer < 0 else {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
        self.data += build_batch([(0, key, value, headers)], base_offset=self.end, transactional=producer >= 0, **how)
        self.end += 1

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        self.data += build_end_transaction_marker(
            commit=commit,
            coordinator_epoch=0,
            producer_id=producer,
            producer_epoch=0,
            timestamp=0,
            base_offset=self.end,
        )
        self.end += 1

    def scan(self, name: str = "p/q", token: bytes = b"mine") -> DecisionScan:
        scan = DecisionScan(name, token)
        assert scan.add(memoryview(self.data), 0) == self.end
        return scan


def test_a_decision_counts_if_its_transaction_is_committed():
    log = Log()
    log.put(b"p/q", b"1", producer=7)
    log.end_transaction(7, commit=True)
    log.put(b"p/q", b"2", producer=7)
    log.end_transaction(7, commit=False)
    log.put(b"p/q-b", b"of another sink", producer=8)
    found = log.scan()
    assert (found.decision, found.is_complete) == (b"1", False)


def test_a_decision_whose_marker_is_compacted_away():
    log = Log()
    log.put(b"p/q", b"1", producer=7)
    assert log.scan().decision == b"1"


def test_nothing_behind_the_claim_counts():
    log = Log()
    log.put(b"p/q", b"1", producer=7)
    log.end_transaction(7, commit=True)
    log.put(claim_key("p/q"), None, producer=7, token=b"another")
    log.end_transaction(7, commit=False)
    log.put(claim_key("p/q"), None, producer=7, token=b"mine")
    log.end_transaction(7, commit=False)
    log.put(b"p/q", b"2", producer=7)
    log.end_transaction(7, commit=True)
    log.put(done_key("p/q"), b'{"batch":2}')
    found = log.scan()
    assert (found.decision, found.done, found.is_complete) == (b"1", -1, True)
    assert log.scan(token=b"unknown").is_complete is False


def test_the_last_batch_that_is_done():
    log = Log()
    for batch in (3, 4, 2):
        log.put(done_key("p/q"), b'{"version":2,"batch":%d}' % batch)
    log.put(done_key("p/q-b"), b'{"version":2,"batch":9}')
    assert log.scan().done == 4
