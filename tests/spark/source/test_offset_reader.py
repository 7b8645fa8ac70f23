"""What the driver requests, how often, and which errors reach the user."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import BrokerNotAvailable
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import parse_batch_options
from tests.spark.fake_cluster import PORT, FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    partitions = fake.create("t", partitions=2).partitions
    partitions[1].leader = 1
    for partition in partitions.values():
        partition.append(b"x", b"y", timestamp=5_000)
    return fake


NOW_MS = 20_000


class Driver:
    """An offset reader on a clock that only its pauses move; the pauses are recorded."""

    def __init__(self, cluster: FakeCluster, **more: str) -> None:
        given = {"kafka.bootstrap.servers": "h:9092", **(more or {"subscribe": "t"})}
        self.pauses_s: list[float] = []
        self.reader = OffsetReader(
            parse_batch_options(given, 1_000_000),
            connect=cluster.connect,
            clock=lambda: sum(self.pauses_s),
            sleep=self.pauses_s.append,
            now_ms=lambda: NOW_MS,
        )


def refuse_topic(cluster: FakeCluster, name: str, code: ErrorCode, times: int = 1_000) -> None:
    """Return an error for one topic in the next Metadata responses."""
    answer, failures = cluster.topic_metadata, iter([True] * times)

    def topic_metadata(asked: str) -> Any:
        if asked == name and next(failures, False):
            return messages.MetadataResponse.MetadataResponseTopic(error_code=code, name=name)
        return answer(asked)

    cluster.topic_metadata = topic_metadata  # type: ignore[method-assign]


def refuse_offsets(cluster: FakeCluster, code: ErrorCode, times: int) -> None:
    """Return an error for partition 1 in the next ListOffsets responses."""
    answer, failures = cluster.answer_ListOffsets, iter([True] * times)

    def list_offsets(request: Any, node: int) -> Any:
        response = answer(request, node)
        for topic in response.topics:
            for each in topic.partitions:
                if each.partition_index == 1 and next(failures, False):
                    each.error_code, each.offset = code, -1
        return response

    cluster.answer_ListOffsets = list_offsets  # type: ignore[method-assign]


def test_the_reader_knows_no_topics_before_its_first_request(cluster):
    driver = Driver(cluster)
    assert driver.reader.topic_ids() == {}
    assert cluster.opened == []
    driver.reader.partitions()
    assert driver.reader.topic_ids() == {"t": cluster.topics["t"].topic_id}


def test_close_closes_every_connection(cluster):
    reader = Driver(cluster).reader
    reader.latest(reader.partitions())
    reader.close()
    assert len(cluster.opened) >= 2
    assert all(connection.closed for connection in cluster.opened)


def test_leaders_come_from_the_metadata_that_named_the_partitions(cluster):
    reader = Driver(cluster).reader
    wanted = reader.partitions()
    topic_id = cluster.topics["t"].topic_id
    expected = {("t", 0): Leader(topic_id, "h", PORT, 0), ("t", 1): Leader(topic_id, "h", PORT + 1, 0)}
    assert reader.leaders(wanted) == expected
    assert cluster.requests.count("Metadata") == 1
    assert Driver(cluster).reader.leaders(wanted) == expected, "and are asked for when there is none yet"


def test_a_partition_without_a_leader_is_retried_then_reported(cluster):
    cluster.topics["t"].partitions[1].leader = -1
    driver = Driver(cluster)
    with pytest.raises(KafkaError, match="partition t-1 has no leader") as caught:
        driver.reader.leaders([("t", 0), ("t", 1)])
    assert caught.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert driver.pauses_s[:6] == [0.1, 0.2, 0.4, 0.8, 1, 1]
    assert 58 < sum(driver.pauses_s) < 60


@pytest.mark.parametrize("selection", [{"subscribe": "t,x"}, {"assign": '{"x":[0]}'}])
def test_a_topic_that_does_not_exist_is_reported_soon(cluster, selection):
    driver = Driver(cluster, **selection)
    with pytest.raises(KafkaError, match="topic x does not exist"):
        driver.reader.partitions()
    assert driver.pauses_s == [0.1, 0.2, 0.4], "a broker that has just started may not know it yet"


@pytest.mark.parametrize("selection", [{"subscribe": "t,ordres"}, {"assign": '{"ordres":[0]}'}])
def test_a_mistyped_topic_is_reported_with_the_nearest(cluster, selection):
    cluster.create("orders")
    with pytest.raises(KafkaError, match=r"topic ordres does not exist; did you mean orders\?$") as caught:
        Driver(cluster, **selection).reader.partitions()
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_the_first_broker_does_not_know_yet(cluster):
    refuse_topic(cluster, "t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, times=3)
    assert Driver(cluster).reader.partitions() == [("t", 0), ("t", 1)]


def test_a_broker_that_is_away_for_half_a_minute_is_waited_for(cluster, caplog):
    driver = Driver(cluster)
    driver.reader.latest(driver.reader.partitions())

    def before(name: str) -> None:
        cluster.down = {0, 1} if sum(driver.pauses_s) < 30 else set()

    for connection in cluster.opened:
        connection.close()
    cluster.down = {0, 1}
    driver.reader._cluster.close()
    cluster.dial = before  # type: ignore[method-assign]
    assert driver.reader.partitions() == [("t", 0), ("t", 1)]
    assert 30 <= sum(driver.pauses_s) <= 31.5
    assert caplog.text.count("retrying for up to 60000 ms") == 1, "the user reads why it takes so long, once"


def test_a_broker_that_stays_away_is_given_up_after_the_api_timeout(cluster):
    cluster.down = {0, 1}
    driver = Driver(cluster, subscribe="t", **{"kafka.default.api.timeout.ms": "20000"})
    with pytest.raises(BrokerNotAvailable, match="cannot reach h:9092"):
        driver.reader.partitions()
    assert 19 <= sum(driver.pauses_s) <= 20


def test_there_are_as_many_retries_as_asked_for_however_long_each_takes(cluster):
    cluster.down = {0, 1}
    driver = Driver(cluster, subscribe="t", **{"kafka.default.api.timeout.ms": "0", "fetchOffset.numRetries": "5"})
    with pytest.raises(BrokerNotAvailable):
        driver.reader.partitions()
    assert len(driver.pauses_s) == 5


def test_assigned_partitions_are_those_given(cluster):
    assert Driver(cluster, assign='{"t":[1]}').reader.partitions() == [("t", 1)]


def test_a_topic_without_authorization_is_not_reported_as_missing(cluster):
    refuse_topic(cluster, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    driver = Driver(cluster)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        driver.reader.partitions()
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "does not exist" not in str(caught.value)
    assert driver.pauses_s == []


def test_a_pattern_skips_topics_without_authorization(cluster):
    cluster.create("tt")
    refuse_topic(cluster, "tt", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert Driver(cluster, subscribePattern="t+").reader.partitions() == [("t", 0), ("t", 1)]


def test_a_topic_that_is_being_created_is_retried(cluster):
    refuse_topic(cluster, "t", ErrorCode.LEADER_NOT_AVAILABLE, times=2)
    driver = Driver(cluster, subscribe="t", **{"fetchOffset.retryIntervalMs": "150"})
    assert driver.reader.partitions() == [("t", 0), ("t", 1)]
    assert driver.pauses_s == [0.1, 0.15]


def test_offsets_of_a_partition_that_moves_are_retried(cluster):
    refuse_offsets(cluster, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    driver = Driver(cluster)
    assert driver.reader.latest([("t", 0), ("t", 1)]) == {("t", 0): 2, ("t", 1): 2}
    assert driver.pauses_s == [0.1, 0.2]


@pytest.mark.parametrize(
    ("code", "least_s", "most_s"),
    [(ErrorCode.NOT_LEADER_OR_FOLLOWER, 60, 91), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, 0)],
)
def test_an_error_of_one_partition_is_raised(cluster, code, least_s, most_s):
    refuse_offsets(cluster, code, times=1_000)
    driver = Driver(cluster, subscribe="t", **{"fetchOffset.numRetries": "0"})
    with pytest.raises(KafkaError) as caught:
        driver.reader.latest([("t", 0), ("t", 1)])
    assert caught.value.code == code
    assert least_s - 2 <= sum(driver.pauses_s) <= most_s


def test_without_partitions_no_request_is_sent(cluster):
    assert Driver(cluster).reader.latest([]) == {}
    assert cluster.requests == []


@pytest.mark.parametrize(
    ("option", "value"), [("startingOffsets", '{"t":{"0":1}}'), ("startingOffsetsByTimestamp", '{"t":{"0":1}}')]
)
def test_an_error_about_missing_partitions_names_the_given_option(cluster, option, value):
    reader = Driver(cluster, subscribe="t", **{option: value}).reader
    with pytest.raises(ValueError, match=f"If {option} contains specific offsets, you must specify all"):
        reader.start(reader.partitions())


def test_a_start_without_records_at_or_after_it_is_an_error_or_the_end(cluster):
    cluster.topics["t"].partitions[0].append(b"z", timestamp=9_000)
    given = {"subscribe": "t", "startingOffsetsByTimestamp": '{"t":{"0":9000,"1":9000}}'}
    strict = Driver(cluster, **given).reader
    with pytest.raises(ValueError, match=r"No offset matched .* t-1: they have no record at or after it"):
        strict.start(strict.partitions())
    lenient = Driver(cluster, **given, startingOffsetsByTimestampStrategy="latest").reader
    assert lenient.start(lenient.partitions()) == {("t", 0): 2, ("t", 1): 2}


def test_a_commit_that_is_rejected_is_raised(cluster):
    cluster.group_error = ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
        Driver(cluster).reader.commit("g", {("t", 0): 1})


def test_records_that_are_too_young_wait_and_those_behind_them(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.append(b"young", timestamp=10_001)
    partition.append(b"old", timestamp=9_000)
    for age, end in (("10s", 2), ("9999ms", 4), ("0", 4), ("1h", 0)):
        reader = Driver(cluster, subscribe="t", minRecordAge=age).reader
        assert reader.latest([("t", 0)]) == {("t", 0): end}, age


def test_a_batch_ends_at_the_end_of_a_partition_without_younger_records(cluster):
    cluster.topics["t"].partitions[0].append(b"z", timestamp=9_000)
    reader = Driver(cluster, subscribe="t", endingTimestamp="9000").reader
    assert reader.end({("t", 0): 0, ("t", 1): 0}) == {("t", 0): 2, ("t", 1): 2}


def test_a_start_is_the_first_record_of_a_moment_also_in_an_open_transaction(cluster):
    """Otherwise a query would begin before it, with older records that are committed later, or not begin at all."""
    partition = cluster.topics["t"].partitions[0]
    partition.append(b"z", timestamp=9_000)
    partition.stable_end = 1
    reader = Driver(
        cluster, subscribe="t", startingTimestamp="6000", startingOffsetsByTimestampStrategy="latest"
    ).reader
    assert reader.start(reader.partitions()) == {("t", 0): 2, ("t", 1): 2}
    chosen = '{"t":{"0":6000,"1":5000}}'
    by_partition = Driver(cluster, subscribe="t", startingOffsetsByTimestamp=chosen).reader
    assert by_partition.start(by_partition.partitions()) == {("t", 0): 2, ("t", 1): 0}


def test_an_end_of_a_moment_is_not_beyond_an_open_transaction(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.append(b"z", timestamp=9_000)
    partition.stable_end = 1
    reader = Driver(cluster, subscribe="t", endingTimestamp="9000").reader
    assert reader.end({("t", 0): 0, ("t", 1): 0}) == {("t", 0): 1, ("t", 1): 2}


def test_no_end_is_before_a_position_that_the_log_reaches(cluster):
    """The position of a query that read uncommitted records, or that was given; a log that was cut does end before it."""
    cluster.topics["t"].partitions[0].stable_end = 0
    reader = Driver(cluster).reader
    found = reader.partitions()
    assert reader.latest(found) == {("t", 0): 0, ("t", 1): 2}
    assert reader.latest(found, {("t", 0): 1, ("t", 1): 1}) == {("t", 0): 1, ("t", 1): 2}
    assert reader.latest(found, {("t", 0): 3, ("t", 1): 3}) == {("t", 0): 0, ("t", 1): 2}


def test_high_watermarks_are_asked_for_only_where_the_end_is_behind(cluster):
    reader = Driver(cluster).reader
    found = reader.partitions()
    cluster.requests.clear()
    reader.latest(found, {("t", 0): 2, ("t", 1): 2})
    assert cluster.requests.count("ListOffsets") == 2


def test_the_groups_offsets_are_committed_as_by_a_group_without_members(cluster):
    seen: list[Any] = []
    answer = cluster.answer_OffsetCommit
    cluster.answer_OffsetCommit = lambda request, node: seen.append(request) or answer(request, node)  # type: ignore
    Driver(cluster).reader.commit("g", {("t", 1): 2, ("t", 0): 1})
    (request,) = seen
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
    assert cluster.commits["g"] == {("t", 0): 1, ("t", 1): 2}


def test_a_topic_that_this_user_may_not_read_is_named_with_the_missing_right(cluster):
    refuse_topic(cluster, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    driver = Driver(cluster)
    with pytest.raises(
        KafkaError, match="this user needs Read on topic t: an administrator allows it with `kafka-acls "
    ):
        driver.reader.partitions()
    assert driver.pauses_s == [], "nobody grants it while the query waits"


def test_offsets_that_this_user_may_not_ask_for_are_named_with_the_missing_right(cluster):
    refuse_offsets(cluster, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1_000)
    with pytest.raises(KafkaError, match="this user needs Read on topic t: "):
        Driver(cluster).reader.latest([("t", 0), ("t", 1)])


def test_a_group_that_this_user_may_not_commit_to(cluster):
    cluster.group_error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError, match="this user needs Read on group g: "):
        Driver(cluster).reader.commit("g", {("t", 0): 1})


def test_every_connection_has_the_security_of_the_options(cluster):
    given: list[Any] = []
    secured = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    secured["kafka.sasl.jaas.config"] = f'{module} required username="u" password="p";'
    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "t", **secured}, 0)

    def connect(*address: Any, **more: Any) -> Any:
        given.append(more["security"])
        return cluster.connect(*address, **more)

    reader = OffsetReader(options, connect=connect)
    reader.latest(reader.partitions())
    assert len(given) >= 2
    assert {each.protocol for each in given} == {"SASL_PLAINTEXT"}
