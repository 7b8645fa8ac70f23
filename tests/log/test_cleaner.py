"""What compaction leaves of a log: Kafka's rules, one by one (KIP-58, KIP-98, KIP-534)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.log.append_checks import AppendOrigin
from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.cleaner import group_by_size
from barnabas.log.cleaning_task import SourceSegment
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record_batch import BatchHeader, check_batch
from tests.log.compacted import DIRECTORY, KEY, NOW_MS, Compacted, latest_of_each_key
from tests.log.small_log import Clock


def headers(compacted: Compacted) -> list[BatchHeader]:
    return [header for segment in compacted.log.segments for _, header in segment.headers()]


def end(compacted: Compacted, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
    compacted.log.append_as_leader(
        build_end_transaction_marker(
            commit=commit,
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=compacted.clock(),
        ),
        0,
        origin=AppendOrigin.COORDINATOR,
    )
    compacted.committed()


@pytest.mark.parametrize("codec", list(Compression))
def test_the_last_record_of_each_key_stays_where_it_is(codec: Compression) -> None:
    compacted = Compacted()
    for round_ in range(8):
        compacted.put(("a", f"a{round_}"), ("b", f"b{round_}"), (f"only-{round_}", "x"), compression=codec)
    before = compacted.records()
    batches = {header.base_offset: header for header in headers(compacted)}
    compacted.clean()
    after = compacted.records()
    assert [r.offset for r in after] == [2, 5, 8, 11, 14, 17, 20, 21, 22, 23]
    assert after == [record for record in before if record.offset in {r.offset for r in after}]
    for header in headers(compacted):
        original = batches[header.base_offset]
        assert header.last_offset_delta == original.last_offset_delta
        assert header.compression == original.compression
        if header.record_count:
            assert header.max_timestamp == max(
                r.timestamp for r in after if header.base_offset <= r.offset <= header.last_offset
            )
    for segment in compacted.log.segments:
        data = segment.file().pread(segment.size, 0)
        for position, _ in segment.headers():
            check_batch(data, position)


def test_every_offset_can_still_be_asked_for() -> None:
    compacted = Compacted()
    for i in range(30):
        compacted.put(("a", str(i)), (f"k{i % 4}", str(i)))
    compacted.clean()
    left = [r.offset for r in compacted.records()]
    for offset in range(60):
        found = compacted.log.read(offset, 1, max_offset=60)
        assert found.size
        first = check_batch(found.read())
        assert first.last_offset >= offset
        assert not [other for other in left if offset <= other < first.base_offset]


def test_time_still_finds_offsets() -> None:
    compacted = Compacted()
    for i in range(30):
        compacted.put((f"k{i % 4}", str(i)), timestamp=NOW_MS + i)
    compacted.clean()
    left = compacted.records()
    for i in range(30):
        found = compacted.log.offset_for_timestamp(NOW_MS + i)
        expected = next(r for r in left if r.timestamp >= NOW_MS + i)
        assert found is not None
        assert (found.offset, found.timestamp) == (expected.offset, expected.timestamp)


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    compacted = Compacted(delete_retention_ms=1000)
    compacted.put(("a", "1"), ("b", "1"))
    compacted.put(("a", None), ("c", "1"), timestamp=NOW_MS + 7)
    compacted.put(("d", "1"))
    compacted.clean()
    assert compacted.pairs() == [(1, "b", "1"), (2, "a", None), (3, "c", "1"), (4, "d", "1")]
    marked = [header for header in headers(compacted) if header.has_delete_horizon]
    assert [header.base_timestamp for header in marked] == [NOW_MS + 1000]
    assert [r.timestamp for r in compacted.records() if r.offset in (2, 3)] == [NOW_MS + 7, NOW_MS + 8]
    compacted.clock.ms = NOW_MS + 999
    compacted.put(("e", "1"))
    compacted.clean()
    assert (2, "a", None) in compacted.pairs()
    assert [h.base_timestamp for h in headers(compacted) if h.has_delete_horizon] == [NOW_MS + 1000]
    compacted.clock.ms = NOW_MS + 1000
    compacted.put(("e", "2"))
    compacted.clean()
    assert [key for _, key, _ in compacted.pairs()] == ["b", "c", "d", "e"]
    assert [r.timestamp for r in compacted.records() if r.offset == 3] == [NOW_MS + 8]


def test_aborted_data_goes_and_its_marker_follows_when_nothing_is_left() -> None:
    compacted = Compacted(delete_retention_ms=1000, segment_bytes=10_000)
    compacted.put(("a", "kept"))
    compacted.put(("a", "aborted"), producer_id=7, transactional=True)
    end(compacted, 7, commit=False)
    compacted.put(("b", "committed"), producer_id=8, transactional=True)
    end(compacted, 8, commit=True)
    # Later batches, so that the producers' last sequences do not keep the first ones.
    compacted.put(("c", "1"), producer_id=7, sequence=1, transactional=True)
    end(compacted, 7, commit=True)
    compacted.put(("d", "1"), producer_id=8, sequence=1, transactional=True)
    end(compacted, 8, commit=True)
    compacted.clean()
    assert compacted.pairs() == [(0, "a", "kept"), (3, "b", "committed"), (5, "c", "1"), (7, "d", "1")]
    assert [h.base_offset for h in headers(compacted) if h.is_control] == [2, 4, 6, 8]
    assert [entry.first_offset for entry in compacted.log.aborted_transactions(0, 100)] == [1]
    compacted.put(("b", "newer"))
    compacted.clean()
    # The markers of the transactions without records have their horizon now.
    horizons = {h.base_offset: h.has_delete_horizon for h in headers(compacted) if h.is_control}
    assert horizons[2]
    assert not horizons[6]
    assert compacted.log.aborted_transactions(0, 100) == []
    compacted.clock.ms += 1000
    compacted.put(("b", "newest"))
    compacted.clean()
    assert 2 not in [h.base_offset for h in headers(compacted)]
    assert compacted.pairs() == [(0, "a", "kept"), (5, "c", "1"), (7, "d", "1"), (10, "b", "newest")]


def test_what_a_transaction_committed_is_compacted_and_its_marker_with_it() -> None:
    compacted = Compacted(delete_retention_ms=1000, segment_bytes=10_000)
    compacted.put(("a", "1"), producer_id=7, transactional=True)
    end(compacted, 7, commit=True)
    compacted.put(("a", "2"))
    compacted.put(("a", "3"), producer_id=7, sequence=1)
    compacted.clean()
    # The batch of the transaction was there when its marker was passed.
    assert [h.base_offset for h in headers(compacted)] == [1, 3]
    compacted.put(("b", "1"))
    compacted.clean()
    assert [h.has_delete_horizon for h in headers(compacted) if h.base_offset == 1] == [True]
    compacted.clock.ms += 1000
    compacted.put(("b", "2"))
    compacted.clean()
    assert 1 not in [h.base_offset for h in headers(compacted)]


def test_nothing_beyond_an_open_transaction_is_cleaned() -> None:
    compacted = Compacted()
    for i in range(8):
        compacted.put(("a", str(i)))
    open_at = compacted.log.log_end_offset
    compacted.put(("a", "undecided"), producer_id=7, transactional=True)
    for i in range(8):
        compacted.put(("a", f"later {i}"))
    compacted.clean()
    assert compacted.cleaner.cleaned_to(KEY) <= open_at
    assert [r.offset for r in compacted.records() if r.offset >= open_at] == list(range(open_at, open_at + 9))
    assert len([r for r in compacted.records() if r.offset < open_at]) < open_at


def test_the_last_sequence_of_a_producer_outlives_its_records() -> None:
    compacted = Compacted()
    compacted.put(("a", "1"), ("a", "2"), producer_id=7, sequence=0)
    compacted.put(("a", "3"), ("a", "4"), producer_id=7, sequence=2)
    for i in range(10):
        compacted.put(("a", f"other {i}"))
    compacted.clean()
    kept = [h for h in headers(compacted) if h.producer_id == 7]
    assert [(h.base_offset, h.record_count, h.last_sequence, h.last_offset) for h in kept] == [(2, 0, 3, 3)]
    for path in compacted.disk.paths():
        if path.endswith(".snapshot"):
            compacted.disk.remove(path)
    again = compacted.reopened()
    [producer] = again.log.producers()
    assert (producer.producer_id, producer.last_sequence, producer.last_offset) == (7, 3, 3)
    again.put(("b", "1"), producer_id=7, sequence=4)


def test_the_last_marker_of_a_producer_outlives_its_transaction() -> None:
    compacted = Compacted(delete_retention_ms=0)
    compacted.put(("a", "1"), producer_id=7, transactional=True)
    # The marker raises the epoch, as transaction version 2 does: no batch of that epoch is known.
    end(compacted, 7, commit=True, epoch=1)
    for i in range(10):
        compacted.put(("a", f"other {i}"))
    for _ in range(3):
        compacted.put(("b", "1"))
        compacted.clean()
    [marker] = [h for h in headers(compacted) if h.is_control]
    assert (marker.producer_id, marker.producer_epoch, marker.record_count) == (7, 1, 0)


def test_records_without_a_key_go() -> None:
    compacted = Compacted(cleanup_policy=frozenset({"delete"}))
    compacted.log.append_as_leader(build_batch([(NOW_MS, None, b"no key", ()), (NOW_MS, b"k", b"v", ())]), 0)
    compacted.log.append_as_leader(build_batch([(NOW_MS, None, b"no key", ())]), 0)
    compacted.put(("z", "1"))
    compacted.log.close(clean=False)
    again = Compacted(compacted.disk, clock=compacted.clock)
    again.clean()
    assert [(r.offset, r.key) for r in again.records()] == [(1, b"k"), (3, b"z")]
    assert again.cleaner.stats.last is not None
    assert again.cleaner.stats.last.invalid_messages_read == 2


def test_the_last_batch_of_a_new_segment_stays_though_empty() -> None:
    compacted = Compacted(segment_bytes=200)
    for i in range(6):
        compacted.put(("a", "x" * 20 + str(i)))
    compacted.put(("b", "1"))
    compacted.clean()
    segments = compacted.log.segments
    for slot, segment in enumerate(segments):
        if segment is not segments.active:
            *_, (_, last) = segment.headers()
            assert last.next_offset == segments.end_of(slot, -1)


def test_a_map_too_small_for_all_keys_takes_several_rounds() -> None:
    compacted = Compacted(cleaner=CleanerConfig(dedupe_buffer_bytes=24 * 10, load_factor=0.5, backoff_ms=0))
    for i in range(40):
        compacted.put((f"k{i % 13}", str(i)))
    before = compacted.pairs()
    compacted.clean()
    assert compacted.cleaner.stats.cleanings >= 3
    assert compacted.pairs() == latest_of_each_key(before)
    assert compacted.cleaner.cleaned_to(KEY) == 40


def test_segments_are_put_together_by_size_and_range() -> None:
    def source(base: int, end_offset: int, size: int, index: int = 8, time_index: int = 12) -> SourceSegment:
        return SourceSegment(base, end_offset, size, index, time_index)

    def bases(*sources: SourceSegment) -> list[list[int]]:
        return [[s.base_offset for s in group] for group in group_by_size(list(sources), 100, 60)]

    assert bases() == []
    assert bases(source(0, 10, 50), source(10, 20, 50), source(20, 30, 1)) == [[0, 10], [20]]
    assert bases(source(0, 10, 300), source(10, 20, 50)) == [[0], [10]]
    assert bases(source(0, 10, 1, index=56), source(10, 20, 1), source(20, 30, 1)) == [[0], [10, 20]]
    assert bases(source(0, 10, 1, time_index=50), source(10, 20, 1)) == [[0], [10]]
    far = 2**31 - 1
    assert bases(source(0, 10, 1), source(10, far + 1, 1)) == [[0, 10]]
    assert bases(source(0, 10, 1), source(10, far + 2, 1)) == [[0], [10]]
    assert bases(source(0, 10, 1), source(10, far + 2, 0)) == [[0, 10]]


def test_small_segments_become_one() -> None:
    compacted = Compacted(segment_bytes=1000)
    for i in range(6):
        compacted.put((f"k{i}", "v"))
        compacted.log.roll()
    compacted.clean()
    assert [segment.base_offset for segment in compacted.log.segments] == [0, 6]
    names = {path.rpartition("/")[2] for path in compacted.disk.paths() if path.startswith(DIRECTORY)}
    assert {name for name in names if name.endswith((".cleaned", ".swap"))} == set()
    assert {name for name in names if name.endswith((".log", ".index", ".timeindex"))} == {
        f"{base:020d}{suffix}" for base in (0, 6) for suffix in (".log", ".index", ".timeindex")
    }


def test_the_age_of_the_file_stays_for_retention() -> None:
    clock = Clock()
    compacted = Compacted(clock=clock, segment_bytes=1000)
    compacted.disk.now_ms = clock
    compacted.log.append_as_leader(build_batch([(-1, b"k", b"1", ())]), 0)
    compacted.log.append_as_leader(build_batch([(-1, b"k", b"2", ())]), 0)
    compacted.committed()
    clock.ms += 50_000
    compacted.clean()
    assert compacted.log.segments.at(0).largest_timestamp() == NOW_MS


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["1", "two", None])), min_size=1, max_size=4),
            st.sampled_from(list(Compression)),
            st.booleans(),
        ),
        min_size=1,
        max_size=25,
    )
)
def test_whatever_is_written_the_last_of_each_key_is_left(
    batches: list[tuple[list[tuple[str, str | None]], Compression, bool]],
) -> None:
    compacted = Compacted(delete_retention_ms=10**6)
    for records, codec, clean_now in batches:
        compacted.put(*records, compression=codec)
        if clean_now:
            before = compacted.pairs()
            compacted.clean()
            assert compacted.pairs() == latest_of_each_key(before)
    before = compacted.pairs()
    compacted.clean()
    assert compacted.pairs() == latest_of_each_key(before)
    compacted.clock.ms += 10**6
    compacted.put(("zz", "1"))
    compacted.clean()
    # Tombstones that the first cleaning has seen are due now.
    assert {key for _, key, value in compacted.pairs() if value is not None} == {
        key for _, key, value in latest_of_each_key(before) if value is not None
    } | {"zz"}
    assert [value for _, _, value in compacted.pairs() if value is None] == []
