"""A stream moves through its topics batch by batch, and detects changes that a position alone does not show."""

from __future__ import annotations

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.source import stream as stream_module
from barnabas.spark.source.data_loss import DataLoss, LossReports
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import SourceOptions, parse_stream_options
from barnabas.spark.source.stream import StreamReader
from tests.spark.fake_cluster import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster()
    fake.create("a", partitions=2)
    fill(fake, "a", 0, 10)
    fill(fake, "a", 1, 30)
    return fake


def fill(cluster: FakeCluster, topic: str, partition: int, count: int, timestamp: int = 0) -> None:
    cluster.topics[topic].partitions[partition].append(*[b"x"] * count, timestamp=timestamp)


class PlayedReader(StreamReader):
    """Reads from a cluster in memory, on a clock that only its pauses move."""

    def __init__(self, options: SourceOptions, cluster: FakeCluster) -> None:
        super().__init__(options)
        self.pauses_s: list[float] = []
        self._offset_reader = OffsetReader(
            options, connect=cluster.connect, clock=self.now_s, sleep=self.pauses_s.append
        )
        self._losses = LossReports(options, connect=cluster.connect)

    def now_s(self) -> float:
        return sum(self.pauses_s)


def reader(cluster: FakeCluster, now_ms: int = 1_000_000, **more: str) -> PlayedReader:
    given = {"kafka.bootstrap.servers": "h:9092", "startingOffsets": "earliest", "subscribePattern": "[ab]", **more}
    return PlayedReader(parse_stream_options(given, now_ms), cluster)


ALL = ReadAllAvailable()


def at(offset: dict) -> dict:
    """The position in an offset, without what the checkpoint has beside it."""
    return {topic: partitions for topic, partitions in offset.items() if not topic.startswith("~")}


def as_stored(offset: dict) -> dict:
    """The offset as Spark reads it from a checkpoint."""
    return json.loads(json.dumps(offset))


def begin(stream: StreamReader) -> dict:
    """Plan the first batch; return its end."""
    return stream.latestOffset(stream.initialOffset(), ALL)


def tasks(stream: StreamReader, start: dict, end: dict) -> list[tuple[str, int, int, int]]:
    found = [task.wanted for task in stream.partitions(start, end)]
    return [(r.topic, r.partition, r.start, r.end) for r in found]


def test_from_the_beginning(cluster):
    stream = reader(cluster)
    start = stream.initialOffset()
    assert start == {"a": {"0": 0, "1": 0}}
    end = stream.latestOffset(start, ALL)
    assert at(end) == {"a": {"0": 10, "1": 30}}
    assert tasks(stream, start, end) == [("a", 0, 0, 10), ("a", 1, 0, 30)]
    assert stream.latestOffset(end, ALL) == end
    assert tasks(stream, end, end) == []


def test_a_stream_begins_at_the_end_by_option(cluster):
    assert reader(cluster, startingOffsets="latest").initialOffset() == {"a": {"0": 10, "1": 30}}


def test_from_given_offsets(cluster):
    assert reader(cluster, startingOffsets='{"a":{"0":-1,"1":7}}').initialOffset() == {"a": {"0": 10, "1": 7}}
    with pytest.raises(ValueError, match="you must specify all TopicPartitions"):
        begin(reader(cluster, startingOffsets='{"a":{"0":3}}'))


def test_from_a_moment(cluster):
    fill(cluster, "a", 0, 1, timestamp=5_000)
    fill(cluster, "a", 1, 1, timestamp=6_000)
    assert reader(cluster, startingTimestamp="1970-01-01T00:00:05").initialOffset() == {"a": {"0": 10, "1": 30}}
    by_partition = '{"a":{"0":5000,"1":"-995s"}}'
    assert reader(cluster, startingOffsetsByTimestamp=by_partition).initialOffset() == {"a": {"0": 10, "1": 30}}
    with pytest.raises(ValueError, match="No offset matched from request of timestamp"):
        begin(reader(cluster, startingTimestamp="5500"))
    latest = reader(cluster, startingTimestamp="5500", startingOffsetsByTimestampStrategy="latest")
    assert latest.initialOffset() == {"a": {"0": 11, "1": 30}}


def test_only_committed_records_count_when_only_they_are_read(cluster):
    cluster.topics["a"].partitions[1].stable_end = 25
    start = {"a": {"0": 0, "1": 0}}
    uncommitted = reader(cluster, **{"kafka.isolation.level": "read_uncommitted"})
    assert at(reader(cluster).latestOffset(start, ALL)) == {"a": {"0": 10, "1": 25}}
    assert at(uncommitted.latestOffset(start, ALL)) == {"a": {"0": 10, "1": 30}}


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_position_beyond_an_open_transaction_is_no_loss(cluster, fail):
    """A checkpoint of a query that read uncommitted records; offsets that were given."""
    partition = cluster.topics["a"].partitions[1]
    before = begin(reader(cluster, **{"kafka.isolation.level": "read_uncommitted"}))
    partition.stable_end = 25
    stream = reader(cluster, failOnDataLoss=fail)
    stream.initialOffset()
    assert stream.latestOffset(as_stored(before), ALL) == before
    assert at(stream.reportLatestOffset()) == {"a": {"0": 10, "1": 30}}
    fill(cluster, "a", 1, 5)
    assert stream.latestOffset(as_stored(before), ALL) == before
    partition.stable_end = None
    after = stream.latestOffset(as_stored(before), ALL)
    assert tasks(stream, before, after) == [("a", 1, 30, 35)]
    assert stream.pauses_s == []


def test_an_available_now_query_that_begins_beyond_an_open_transaction_ends(cluster):
    cluster.topics["a"].partitions[1].stable_end = 25
    stream = reader(cluster, startingOffsets='{"a":{"0":0,"1":28}}')
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    assert start == {"a": {"0": 0, "1": 28}}
    end = stream.latestOffset(start, ALL)
    assert tasks(stream, start, end) == [("a", 0, 0, 10)]
    assert stream.latestOffset(end, ALL) == end


def test_a_batch_takes_at_most_max_offsets_per_trigger(cluster):
    stream = reader(cluster, maxOffsetsPerTrigger="20")
    assert stream.getDefaultReadLimit() == ReadMaxRows(20)
    start = stream.initialOffset()
    assert at(stream.latestOffset(start, ReadMaxRows(20))) == {"a": {"0": 5, "1": 15}}
    assert at(stream.latestOffset(start, ALL)) == {"a": {"0": 10, "1": 30}}


def test_without_limits_a_batch_takes_everything(cluster):
    assert reader(cluster).getDefaultReadLimit() == ReadAllAvailable()


def test_a_batch_waits_for_min_offsets_or_the_delay(cluster, monkeypatch):
    now_ms = 1_000_000
    monkeypatch.setattr(stream_module.time, "time_ns", lambda: now_ms * 1_000_000)
    stream = reader(cluster, minOffsetsPerTrigger="5", maxTriggerDelay="10s")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    end = stream.latestOffset(stream.initialOffset(), limit)
    fill(cluster, "a", 0, 4)
    assert stream.latestOffset(end, limit) == end
    assert at(stream.latestOffset(end, ALL)) == {"a": {"0": 14, "1": 30}}
    now_ms += 9_999
    assert stream.latestOffset(end, limit) == end
    now_ms += 1
    assert at(stream.latestOffset(end, limit)) == {"a": {"0": 14, "1": 30}}


def test_available_now_stops_where_the_topics_ended(cluster):
    stream = reader(cluster, maxOffsetsPerTrigger="25", minOffsetsPerTrigger="20")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    fill(cluster, "a", 0, 100)
    seen = [start]
    while (end := stream.latestOffset(seen[-1], ReadMaxRows(25))) != seen[-1]:
        seen.append(end)
    assert at(seen[-1]) == {"a": {"0": 10, "1": 30}}
    assert len(seen) == 3


def test_available_now_from_the_latest_does_not_begin_beyond_its_end(cluster):
    stream = reader(cluster, startingOffsets="latest")
    stream.prepareForTriggerAvailableNow()
    fill(cluster, "a", 0, 5)
    start = stream.initialOffset()
    assert start == {"a": {"0": 10, "1": 30}}
    assert at(stream.latestOffset(start, ALL)) == at(start)


def test_available_now_notices_a_log_that_went_back(cluster):
    stream = reader(cluster)
    stream.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match="offset was changed from 31 to 30"):
        stream.latestOffset({"a": {"0": 0, "1": 31}}, ALL)


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": "earliest"},
        {"startingOffsets": '{"a":{"0":0,"1":0}}'},
        {"startingTimestamp": "-10s"},
        {"startingTimestamp": "1970-01-01T00:16:30"},
        {"startingOffsetsByTimestamp": '{"a":{"0":"-10s","1":"-10s"}}'},
    ],
    ids=lambda start: "-".join(start.values()),
)
def test_a_first_batch_that_is_repeated_has_the_same_records(cluster, start):
    """Spark asks for the beginning again, an hour later: other moments, no records there, a log that begins later."""
    for partition in (0, 1):
        cluster.topics["a"].partitions[partition].timestamps = [(995_000 + i, i) for i in range(30)]
    stream = reader(cluster, now_ms=1_000_000, **start)
    end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(20))
    planned = tasks(stream, stream.initialOffset(), end)
    assert [r[2] for r in planned] == [0, 0]
    cluster.topics["a"].partitions[1].start = 6
    fill(cluster, "a", 0, 5)
    again = reader(cluster, now_ms=4_600_000, **start)
    assert tasks(again, again.initialOffset(), as_stored(end)) == planned
    assert at(again.latestOffset(end, ALL)) == {"a": {"0": 15, "1": 30}}


def test_a_first_batch_from_the_latest_that_is_repeated_has_the_same_records(cluster):
    stream = reader(cluster, startingOffsets="latest")
    start = stream.initialOffset()
    fill(cluster, "a", 0, 5)
    end = stream.latestOffset(start, ALL)
    fill(cluster, "a", 0, 5)
    assert tasks(stream, stream.initialOffset(), end) == [("a", 0, 10, 15)], "Spark asks twice in one trigger"
    again = reader(cluster, startingOffsets="latest")
    assert tasks(again, again.initialOffset(), as_stored(end)) == [("a", 0, 10, 15)]


def test_only_the_first_batch_has_a_beginning(cluster):
    stream = reader(cluster)
    end = begin(stream)
    fill(cluster, "a", 0, 1)
    assert "~first" in end
    assert "~first" not in stream.latestOffset(end, ALL)


def test_partitions_that_are_new_in_a_repeated_batch_begin_where_they_began(cluster):
    """Retention has taken their first records since: the task notices, and the plan does not hide it."""
    stream = reader(cluster)
    end = begin(stream)
    cluster.create("b")
    fill(cluster, "b", 0, 8)
    further = stream.latestOffset(end, ALL)
    cluster.topics["b"].partitions[0].start = 6
    assert tasks(reader(cluster), as_stored(end), as_stored(further)) == [("b", 0, 0, 8)]


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("lag", ["topic unknown", "fewer partitions", "older topic", "lower end"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_broker_that_lags_behind_the_cluster_proves_no_loss(cluster, fail, lag, frozen):
    """What it says for a moment would be data loss, or with failOnDataLoss=false the same records once more."""
    stream = reader(cluster, failOnDataLoss=fail)
    end = as_stored(begin(stream))
    topic, partition = cluster.topics["a"], cluster.topics["a"].partitions[1]
    stream = reader(cluster, failOnDataLoss=fail)
    if lag == "topic unknown":
        del cluster.topics["a"]
    elif lag == "fewer partitions":
        del topic.partitions[1]
    elif lag == "older topic":
        cluster.create("a", partitions=2, incarnation=0)
    else:
        partition.end = 20
    if frozen:
        stream.prepareForTriggerAvailableNow()

    def before(name: str) -> None:
        if stream.now_s() > 2:
            cluster.topics["a"] = topic
            topic.partitions[1], partition.end = partition, 30

    cluster.before = before
    assert stream.latestOffset(end, ALL) == end


def test_a_batch_that_is_repeated_beside_a_broker_that_lags(cluster):
    stream = reader(cluster)
    start = stream.initialOffset()
    end = as_stored(stream.latestOffset(start, ALL))
    topic = cluster.topics["a"]
    again = reader(cluster)
    cluster.create("a", partitions=1, incarnation=0)

    def before(name: str) -> None:
        if again.now_s() > 2:
            cluster.topics["a"] = topic

    cluster.before = before
    assert tasks(again, start, end) == [("a", 0, 0, 10), ("a", 1, 0, 30)]


def test_a_checkpoint_of_an_older_version_is_continued(cluster):
    old = {"a": {"0": 4, "1": 30}}
    stream = reader(cluster)
    end = stream.latestOffset(old, ALL)
    assert tasks(stream, old, end) == [("a", 0, 4, 10)]
    assert tasks(reader(cluster), old, {"a": {"0": 10, "1": 30}}) == [("a", 0, 4, 10)]
    assert tasks(reader(cluster), {"a": {"0": 4}}, {"a": {"0": 10, "1": 30}}) == [("a", 0, 4, 10), ("a", 1, 0, 30)]
    at_the_end = {"a": {"0": 10, "1": 30}}
    assert reader(cluster).latestOffset(at_the_end, ALL) == at_the_end, "and without records no batch begins"


def test_a_topic_created_again_between_two_runs_is_noticed(cluster):
    end = as_stored(begin(reader(cluster)))
    cluster.create("a", partitions=2, incarnation=2)
    fill(cluster, "a", 0, 50)
    fill(cluster, "a", 1, 30)
    with pytest.raises(DataLoss, match="Topic a was deleted and created again"):
        reader(cluster).latestOffset(end, ALL)
    frozen = reader(cluster)
    frozen.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match="Topic a was deleted and created again"):
        frozen.latestOffset(end, ALL)
    forgiving = reader(cluster, failOnDataLoss="false")
    further = forgiving.latestOffset(end, ReadMaxRows(40))
    assert tasks(forgiving, end, further) == [("a", 0, 0, 25), ("a", 1, 0, 15)]


def test_a_batch_that_is_repeated_reads_no_other_topic(cluster):
    """The batch was planned, its topic was created again, and the same offsets are other records now."""
    stream = reader(cluster)
    start = stream.initialOffset()
    end = as_stored(stream.latestOffset(start, ALL))
    cluster.create("a", partitions=2, incarnation=2)
    fill(cluster, "a", 0, 50)
    with pytest.raises(DataLoss, match="Topic a was deleted and created again after the batch was planned"):
        tasks(reader(cluster), start, end)
    forgiving = reader(cluster, failOnDataLoss="false")
    assert tasks(forgiving, start, end) == []
    assert tasks(forgiving, end, forgiving.latestOffset(end, ALL)) == [("a", 0, 0, 50)]


def recorded(cluster: FakeCluster) -> list[tuple[str, int, int, int | None, str]]:
    found = [json.loads(value) for _, _, values in cluster.produced for value in values]
    return [(r["topic"], r["partition"], r["from"], r["to"], r["reason"]) for r in found]


def test_what_the_driver_skips_is_recorded(cluster):
    cluster.create("losses")
    cluster.create("b", partitions=2)
    fill(cluster, "b", 0, 3)
    stream = reader(cluster, failOnDataLoss="false", lossesTopic="losses")
    end = begin(stream)
    del cluster.topics["b"]
    fill(cluster, "a", 0, 1)
    end = stream.latestOffset(end, ALL)
    assert recorded(cluster) == [
        ("b", 0, 3, None, "Partitions b-0, b-1 are gone"),
        ("b", 1, 0, None, "Partitions b-0, b-1 are gone"),
    ]
    cluster.produced.clear()
    cluster.create("b", incarnation=2)
    fill(cluster, "b", 0, 9)
    cluster.topics["b"].partitions[0].start = 2
    end = stream.latestOffset(end, ALL)
    assert recorded(cluster) == [("b", 0, 0, 2, "Added partition b-0 starts from 2 instead of 0")]
    cluster.produced.clear()
    cluster.create("b", incarnation=3)
    end = stream.latestOffset(end, ALL)
    assert recorded(cluster) == [("b", 0, 9, None, "Topic b was deleted and created again")]
    cluster.produced.clear()
    cluster.topics["a"].partitions[1].end = 20
    stream.latestOffset(end, ALL)
    assert [each[:4] for each in recorded(cluster)] == [("a", 1, 20, 30)]


def test_a_repeated_batch_of_another_topic_is_recorded(cluster):
    cluster.create("losses")
    forgiving = reader(cluster, failOnDataLoss="false", lossesTopic="losses")
    start = forgiving.initialOffset()
    end = as_stored(forgiving.latestOffset(start, ALL))
    cluster.create("a", partitions=2, incarnation=2)
    assert tasks(reader(cluster, failOnDataLoss="false", lossesTopic="losses"), start, end) == []
    assert [each[:4] for each in recorded(cluster)] == [("a", 0, 0, 10), ("a", 1, 0, 30)]


def test_a_query_whose_losses_topic_does_not_exist_does_not_start(cluster):
    with pytest.raises(ValueError, match="lossesTopic: topic nowhere does not exist"):
        reader(cluster, failOnDataLoss="false", lossesTopic="nowhere").initialOffset()


def test_a_batch_that_is_repeated_after_its_topic_was_deleted(cluster):
    cluster.create("b")
    fill(cluster, "b", 0, 3)
    stream = reader(cluster)
    start = stream.initialOffset()
    end = as_stored(stream.latestOffset(start, ALL))
    del cluster.topics["b"]
    with pytest.raises(DataLoss, match="Partitions b-0 are gone"):
        tasks(reader(cluster), start, end)
    assert tasks(reader(cluster, failOnDataLoss="false"), start, end) == [("a", 0, 0, 10), ("a", 1, 0, 30)]


def test_new_topics_and_partitions_are_read_from_their_beginning(cluster):
    stream = reader(cluster)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    cluster.create("b")
    fill(cluster, "b", 0, 3)
    further = stream.latestOffset(end, ALL)
    assert at(further) == {"a": {"0": 10, "1": 30}, "b": {"0": 3}}
    assert tasks(stream, end, further) == [("b", 0, 0, 3)]


def test_a_new_partition_that_has_already_lost_records(cluster):
    stream = reader(cluster)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    cluster.create("b")
    fill(cluster, "b", 0, 3)
    cluster.topics["b"].partitions[0].start = 1
    with pytest.raises(DataLoss, match="Added partition b-0 starts from 1 instead of 0"):
        stream.latestOffset(end, ALL)
    forgiving = reader(cluster, failOnDataLoss="false")
    assert tasks(forgiving, end, forgiving.latestOffset(end, ALL)) == [("b", 0, 1, 3)]


def test_a_topic_that_disappears_is_data_loss(cluster):
    stream, forgiving = reader(cluster), reader(cluster, failOnDataLoss="false")
    cluster.create("b")
    end = stream.latestOffset({"a": {"0": 0, "1": 0}, "b": {"0": 0}}, ALL)
    del cluster.topics["b"]
    with pytest.raises(DataLoss, match="Partitions b-0 are gone"):
        stream.latestOffset(end, ALL)
    assert at(forgiving.latestOffset(end, ALL)) == {"a": {"0": 10, "1": 30}}


def test_a_log_that_ends_before_the_position_is_data_loss(cluster):
    start = {"a": {"0": 10, "1": 31}}
    with pytest.raises(DataLoss, match="Partition a-1's offset was changed from 31 to 30"):
        reader(cluster).latestOffset(start, ALL)
    forgiving = reader(cluster, failOnDataLoss="false")
    end = forgiving.latestOffset(start, ALL)
    assert at(end) == {"a": {"0": 10, "1": 30}}
    assert tasks(forgiving, start, end) == []


def test_a_topic_created_again_is_noticed_though_it_has_grown_past_the_position(cluster):
    stream, forgiving = reader(cluster), reader(cluster, failOnDataLoss="false")
    end = stream.latestOffset(stream.initialOffset(), ALL)
    forgiving.latestOffset(forgiving.initialOffset(), ALL)
    cluster.create("a", partitions=2, incarnation=2)
    fill(cluster, "a", 0, 50)
    fill(cluster, "a", 1, 50)
    with pytest.raises(DataLoss, match="Topic a was deleted and created again"):
        stream.latestOffset(end, ALL)
    further = forgiving.latestOffset(end, ALL)
    assert tasks(forgiving, end, further) == [("a", 0, 0, 50), ("a", 1, 0, 50)]
    fill(cluster, "a", 0, 1)
    assert tasks(forgiving, further, forgiving.latestOffset(further, ALL)) == [("a", 0, 50, 51)]


def test_a_topic_created_again_before_the_first_batch_is_noticed(cluster):
    stream = reader(cluster)
    start = stream.initialOffset()
    cluster.create("a", partitions=2, incarnation=2)
    with pytest.raises(DataLoss, match="Topic a was deleted and created again"):
        stream.latestOffset(start, ALL)


def test_a_shorter_topic_created_again_is_one_loss_not_two(cluster, caplog):
    stream = reader(cluster, failOnDataLoss="false")
    end = stream.latestOffset(stream.initialOffset(), ALL)
    cluster.create("a", partitions=2, incarnation=2)
    stream.latestOffset(end, ALL)
    assert "Topic a was deleted and created again" in caplog.text
    assert "offset was changed" not in caplog.text


def test_a_first_batch_that_begins_past_its_end_is_reported(cluster, caplog):
    """A query that begins at the end was killed in its first batch: the end was recorded, its beginning was not."""
    stream = reader(cluster, startingOffsets="latest")
    end = stream.initialOffset()
    stream.partitions(end, end)
    assert not caplog.text
    stream.partitions(end, {"a": {"0": 9, "1": 30}})
    assert caplog.text.count("the first batch's start was not stored") == 1


def test_a_query_with_a_checkpoint_has_no_first_batch(cluster, caplog):
    reader(cluster).partitions({"a": {"0": 5, "1": 5}}, {"a": {"0": 9, "1": 30}})
    assert not caplog.text


def test_partitions_that_are_gone_do_not_count_for_the_first_batch(cluster, caplog):
    stream = reader(cluster, startingOffsets="latest")
    stream.initialOffset()
    stream.partitions({"a": {"0": 10}}, {"a": {"0": 10}})
    assert not caplog.text


def test_progress_shows_as_a_groups_offsets(cluster):
    stream = reader(cluster, **{"kafka.group.id": "g"})
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert cluster.commits["g"] == {("a", 0): 0, ("a", 1): 0}
    stream.commit(end)
    assert cluster.commits["g"] == {("a", 0): 10, ("a", 1): 30}
    asked = len(cluster.requests)
    stream.commit(end)
    assert len(cluster.requests) == asked


def test_the_last_batch_shows_without_a_next_one(cluster):
    stream = reader(cluster, **{"kafka.group.id": "g"})
    end = stream.latestOffset(stream.initialOffset(), ALL)
    stream.latestOffset(end, ALL)
    assert cluster.commits["g"] == {("a", 0): 10, ("a", 1): 30}


def test_a_group_that_cannot_be_written_does_not_stop_the_query(cluster, caplog):
    stream = reader(cluster, **{"kafka.group.id": "g"})
    cluster.group_error = ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(3):
        fill(cluster, "a", 0, 1)
        stream.commit(stream.latestOffset({"a": {"0": 0, "1": 0}}, ALL))
    assert caplog.text.count("cannot commit progress to group g") == 1
    for error in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        cluster.group_error = error
        fill(cluster, "a", 0, 1)
        stream.commit(stream.latestOffset({"a": {"0": 0, "1": 0}}, ALL))
    assert caplog.text.count("cannot commit progress to group g") == 2, "once for each time that it begins to fail"


def test_without_a_group_nothing_is_committed(cluster, caplog):
    stream = reader(cluster)
    stream.commit(stream.latestOffset(stream.initialOffset(), ALL))
    assert "OffsetCommit" not in cluster.requests
    assert not caplog.text


def test_the_report_before_the_first_batch_asks_for_the_ends(cluster):
    assert reader(cluster).reportLatestOffset() == {"a": {"0": 10, "1": 30}}


def test_stop_closes_the_connections_and_may_be_called_twice(cluster):
    stream = reader(cluster)
    stream.initialOffset()
    stream.stop()
    assert cluster.opened
    assert all(connection.closed for connection in cluster.opened)
    stream.stop()


def test_the_reader_dials_when_it_is_first_asked(cluster, monkeypatch):
    monkeypatch.setattr(stream_module, "OffsetReader", lambda options: OffsetReader(options, connect=cluster.connect))
    given = {"kafka.bootstrap.servers": "h:9092", "startingOffsets": "earliest", "subscribe": "a"}
    stream = StreamReader(parse_stream_options(given, 0))
    assert not cluster.opened
    assert stream.initialOffset() == {"a": {"0": 0, "1": 0}}
    assert cluster.opened


def test_the_progress_report_sends_no_request(cluster):
    stream = reader(cluster)
    end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(4))
    asked = len(cluster.requests)
    assert end != stream.reportLatestOffset() == {"a": {"0": 10, "1": 30}}
    assert len(cluster.requests) == asked


def test_the_executors_copy_has_no_connection(cluster):
    stream = reader(cluster)
    stream.initialOffset()
    pickled = pickle.dumps(stream)
    assert b"OffsetReader" not in pickled, "it holds the connections"
    assert repr(pickle.loads(pickled)) == repr(stream)


def test_a_subscribed_topic_must_exist(cluster):
    del cluster.topics["a"]
    cluster.create("a")
    given = {"kafka.bootstrap.servers": "h:9092", "subscribe": "nowhere"}
    stream = PlayedReader(parse_stream_options(given, 0), cluster)
    with pytest.raises(Exception, match="topic nowhere does not exist"):
        stream.initialOffset()


def test_retries_while_the_cluster_is_moving(cluster):
    failures = iter([True, True, False])

    def before(name: str) -> None:
        if name == "Metadata" and next(failures, False):
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "moving")

    cluster.before = before
    assert reader(cluster).initialOffset() == {"a": {"0": 0, "1": 0}}
    cluster.before = lambda name: (_ for _ in ()).throw(KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"))
    with pytest.raises(QueryError, match="gone"):
        reader(cluster, **{"fetchOffset.numRetries": "2"}).initialOffset()


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize(
    ("topics", "read"),
    [
        ({"subscribe": "b"}, "b"),
        ({"subscribePattern": "b.*"}, r"topics that match b\.\*"),
        ({"assign": '{"b":[0,1]}'}, "b-0, b-1"),
    ],
)
def test_a_checkpoint_of_a_query_of_other_topics(cluster, fail, topics, read):
    """Otherwise the query would begin its topics at their beginning, and its sink would take that for the next batch."""
    before = begin(reader(cluster))
    cluster.create("b", partitions=2)
    options = {"kafka.bootstrap.servers": "h:9092", "startingOffsets": "latest", "failOnDataLoss": fail, **topics}
    wrong = PlayedReader(parse_stream_options(options, 0), cluster)
    wrong.initialOffset()
    expected = f"the checkpoint is of a query of a, and this query reads {read}: use the checkpointLocation that"
    with pytest.raises(ValueError, match=expected):
        wrong.latestOffset(as_stored(before), ALL)
    with pytest.raises(ValueError, match=expected):
        wrong.partitions({"a": {"0": 0, "1": 0}}, as_stored(before))
    assert wrong.pauses_s == []


def test_a_topic_that_the_query_no_longer_reads_is_named_as_such(cluster):
    cluster.create("b")
    before = begin(reader(cluster))
    narrower = PlayedReader(parse_stream_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a"}, 0), cluster)
    narrower.initialOffset()
    with pytest.raises(DataLoss, match="Partitions b-0 of the checkpoint are gone, or no longer among a"):
        narrower.latestOffset(as_stored(before), ALL)


def test_a_checkpoint_of_another_source(cluster):
    stream = reader(cluster)
    stream.initialOffset()
    for call in (lambda: stream.latestOffset(5, ALL), lambda: stream.partitions({"logOffset": 3}, {"logOffset": 4})):
        with pytest.raises(ValueError, match="the checkpoint is of a query with another source"):
            call()


def test_a_partition_of_ordered_growth_waits_for_an_earlier_batch(cluster):
    """The parent of 2 has its fence at 12: the batch that reaches it does not read 2, the next one does."""
    stream = reader(cluster)
    start = begin(stream)
    cluster.growth["a"] = "2>4"
    grown = cluster.topics["a"].partitions
    grown.update({2: type(grown[0])(), 3: type(grown[0])()})
    fill(cluster, "a", 2, 5)
    held = stream.latestOffset(start, ALL)
    assert at(held) == {"a": {"0": 10, "1": 30, "2": 0, "3": 0}}
    assert tasks(stream, start, held) == []
    fill(cluster, "a", 0, 4)
    cluster.growth["a"] = "2>4 since=1 fences=12,0"
    reached = stream.latestOffset(held, ALL)
    assert at(reached) == {"a": {"0": 14, "1": 30, "2": 0, "3": 0}}
    restarted = reader(cluster)
    free = restarted.latestOffset(as_stored(reached), ALL)
    assert at(free) == {"a": {"0": 14, "1": 30, "2": 5, "3": 0}}
    assert tasks(restarted, reached, free) == [("a", 2, 0, 5)]


def test_available_now_reads_a_partition_of_ordered_growth_after_its_parent(cluster):
    cluster.growth["a"] = "1>2 since=1 fences=10"
    stream = reader(cluster)
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    first = stream.latestOffset(start, ALL)
    assert at(first) == {"a": {"0": 10, "1": 0}}
    second = stream.latestOffset(first, ALL)
    assert at(second) == {"a": {"0": 10, "1": 30}}
    assert stream.latestOffset(second, ALL) == second


def test_a_stream_without_new_partitions_asks_once_for_their_growth(cluster):
    stream = reader(cluster)
    end = begin(stream)
    for _ in range(3):
        fill(cluster, "a", 0, 1)
        end = stream.latestOffset(end, ALL)
    assert cluster.requests.count("DescribeConfigs") == 1
