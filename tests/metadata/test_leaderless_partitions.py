"""What the active controller logs about partitions without a leader: reasons, few lines, and nothing that passes."""

from __future__ import annotations

from barnabas.metadata.leaderless_partitions import NAMED_MAX, LeaderlessPartitions
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from tests.api.turn_meter import counted_calls
from tests.metadata.controller_harness import ControllerHarness


class Watched:
    """A controller of two brokers and what it would log."""

    def __init__(self) -> None:
        self.harness = ControllerHarness()
        self.watch = LeaderlessPartitions()
        self.epochs = {broker: self.harness.register(broker) for broker in (1, 2)}

    def create(self, name: str, *assignments: list[int]) -> None:
        request = messages.CreateTopicsRequest
        made = [
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(assignments)
        ]
        topic = request.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=made)
        assert self.harness.send(ApiKey.CREATE_TOPICS, request(topics=[topic])).topics[0].error_code == 0

    def heartbeat(self, broker: int, *, fence: bool = False) -> None:
        self.harness.heartbeat(broker, self.epochs[broker], want_fence=fence)

    def lines(self) -> list[str]:
        return self.watch.report(self.harness.controller.image)


def test_a_partition_that_loses_its_leader_is_reported_once_with_the_reason() -> None:
    watched = Watched()
    watched.create("orders", [1], [2])
    assert watched.lines() == []
    watched.heartbeat(2, fence=True)
    assert watched.lines() == [
        "A partition has no leader: orders-1 (eligible leader replica 2 is offline; start broker 2)"
    ]
    assert watched.lines() == []
    watched.heartbeat(2)
    assert watched.lines() == ["A partition has a leader again: orders-1"]
    assert watched.lines() == []
    assert repr(watched.watch) == "<LeaderlessPartitions reported=0>"


def test_many_partitions_share_a_line() -> None:
    watched = Watched()
    watched.create("orders", *([[2]] * 40))
    watched.heartbeat(2, fence=True)
    (line,) = watched.lines()
    assert line.startswith("40 partitions have no leader: orders-0 (eligible leader replica 2 is offline")
    assert line.count("orders-") == NAMED_MAX
    assert line.endswith(f", and {40 - NAMED_MAX} more")
    watched.heartbeat(2)
    (line,) = watched.lines()
    names = ", ".join(f"orders-{index}" for index in range(NAMED_MAX))
    assert line == f"40 partitions have a leader again: {names}, and {40 - NAMED_MAX} more"


def test_what_passes_while_no_broker_is_active_is_not_reported() -> None:
    watched = Watched()
    watched.create("orders", [1])
    for broker in (1, 2):
        watched.heartbeat(broker, fence=True)
    assert watched.lines() == []
    watched.heartbeat(1)
    assert watched.lines() == []


def test_a_topic_that_is_deleted_has_no_partitions_left_to_report() -> None:
    watched = Watched()
    watched.create("orders", [2])
    watched.create("others", [2])
    watched.heartbeat(2, fence=True)
    assert len(watched.lines()) == 1
    state = messages.DeleteTopicsRequest.DeleteTopicState(name="orders")
    watched.harness.send(ApiKey.DELETE_TOPICS, messages.DeleteTopicsRequest(topics=[state]))
    assert watched.lines() == []
    watched.heartbeat(2)
    assert watched.lines() == ["A partition has a leader again: others-0"]


def test_a_late_watch_learns_of_partitions_that_were_without_a_leader_before() -> None:
    watched = Watched()
    watched.create("orders", [2])
    watched.heartbeat(2, fence=True)
    assert LeaderlessPartitions().report(watched.harness.controller.image) == watched.lines() != []


def test_the_work_for_many_partitions_is_that_of_their_topics() -> None:
    watched = Watched()
    topics, partitions = 20, 500
    lost = PartitionRegistration((2,), (), -1, 1, 1, elr=(2,))
    image = watched.harness.controller.image
    named = [(f"t-{number:02}", number.to_bytes(16, "big")) for number in range(1, topics + 1)]
    many = TopicsImage.of(TopicImage(*each, dict.fromkeys(range(partitions), lost)) for each in named)
    few = TopicsImage.of(TopicImage(*each, {0: lost}) for each in named)
    for before, after, count in ((few, many, topics * (partitions - 1)), (many, few, topics * (partitions - 1))):
        watch = LeaderlessPartitions()
        watch.report(image._replace(topics=before))
        with counted_calls() as events:
            began = events()
            (line,) = watch.report(image._replace(topics=after))
            assert events() - began < topics * partitions / 2
        assert line.startswith(f"{count} partitions have")
