"""From batches to records: control batches, and metadata transactions (KIP-868)."""

from __future__ import annotations

from barnabas.metadata.metadata_batch_loader import MetadataBatchLoader, load_snapshot
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.metadata.snapshots import build_bootstrap
from barnabas.protocol import messages
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, build_control_batch

BEGIN, END, ABORT = (
    messages.BeginTransactionRecord(),
    messages.EndTransactionRecord(),
    messages.AbortTransactionRecord(),
)


def feature(name: str) -> MetadataRecord:
    return messages.FeatureLevelRecord(name=name, feature_level=1)


def batch(*records: MetadataRecord, base_offset: int = 0) -> bytes:
    values = [(7, None, encode_record(record, 33), ()) for record in records]
    return bytes(build_batch(values, base_offset=base_offset, leader_epoch=3))


def leader_change() -> bytes:
    change = messages.LeaderChangeMessage(version=0, leader_id=1)
    return bytes(build_control_batch([(ControlRecordType.LEADER_CHANGE, change)], timestamp=7, leader_epoch=4))


def names(loader: MetadataBatchLoader, *batches: bytes) -> list[list[str]]:
    return [[record.name for record in loaded.records] for loaded in loader.load(batches)]  # type: ignore[attr-defined]


def test_a_batch_gives_its_records_and_its_provenance() -> None:
    (loaded,) = MetadataBatchLoader().load([batch(feature("a"), feature("b"), base_offset=5)])
    assert (loaded.last_offset, loaded.epoch, loaded.append_time_ms) == (6, 3, 7)
    assert loaded.records == [feature("a"), feature("b")]


def test_a_control_batch_changes_nothing_but_counts() -> None:
    (loaded,) = MetadataBatchLoader().load([leader_change()])
    assert (loaded.records, loaded.epoch) == ([], 4)


def test_a_transaction_counts_as_one_when_it_ends() -> None:
    loader = MetadataBatchLoader()
    assert names(loader, batch(BEGIN, feature("a")), batch(feature("b"))) == [[], []]
    assert names(loader, batch(feature("c"), END, feature("d"))) == [["a", "b", "c", "d"]]


def test_an_aborted_transaction_never_was() -> None:
    assert names(MetadataBatchLoader(), batch(BEGIN, feature("a")), batch(ABORT, feature("b"))) == [[], ["b"]]


def test_a_new_leader_ends_what_the_old_one_left_open() -> None:
    loader = MetadataBatchLoader()
    assert names(loader, batch(BEGIN, feature("a")), leader_change(), batch(feature("b"))) == [[], [], ["b"]]


def test_a_snapshot_is_read_without_its_frame() -> None:
    records = [feature("a"), feature("b")]
    assert list(load_snapshot(build_bootstrap(records, 33, 0))) == records
