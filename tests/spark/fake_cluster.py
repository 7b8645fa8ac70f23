"""A cluster in memory that answers the requests the source sends, and can be made to misbehave.

Nothing listens: `FakeCluster.connect` stands in for `BlockingConnection`. Messages are encoded and decoded as they
would be on the wire, so that a field which does not exist in the negotiated version fails here too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.errors import BrokerNotAvailable, ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.ordered_growth import SETTING
from barnabas.records.builder import build_batch
from barnabas.records.record import check_records
from barnabas.records.record_batch import iter_batches

PORT = 9092


@dataclass
class FakePartition:
    """A log as bytes; `batches_per_fetch` stands for the size limit of a fetch."""

    log: bytes = b""
    start: int = 0
    end: int = 0
    stable_end: int | None = None
    leader: int = 0
    leader_epoch: int = 0
    replicas: int = 1
    aborted: list[tuple[int, int]] = field(default_factory=list)
    batches_per_fetch: int = 100
    timestamps: list[tuple[int, int]] = field(default_factory=list)

    def append(self, *values: bytes, timestamp: int = 0, **batch: Any) -> None:
        records: list[Any] = [(timestamp, None, value, []) for value in values]
        self.log += bytes(build_batch(records, base_offset=self.end, **batch))
        self.timestamps += [(timestamp, self.end + i) for i in range(len(values))]
        self.end += len(values)

    def read(self, offset: int) -> bytes:
        spans = [self.log[at : at + h.size] for at, h in iter_batches(self.log) if h.last_offset >= offset]
        return b"".join(spans[: self.batches_per_fetch])


@dataclass
class FakeTopic:
    topic_id: bytes
    partitions: dict[int, FakePartition]


class FakeCluster:
    """Topics by name on one or more brokers; broker n listens on port 9092 + n.

    Attributes:
        fenced: how many brokers have registered and do not serve.
        growth: the setting barnabas.ordered.growth of topics that have it.
        supported: the highest version of each API that a client asks about first; the others are not supported.
        created: the topics of CreateTopics requests.
    """

    def __init__(self, brokers: int = 1) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.brokers = brokers
        self.fenced = 0
        self.growth: dict[str, str] = {}
        self.supported: dict[int, int] = {}
        self.created: list[Any] = []
        self.create_error = ErrorCode.NONE
        self.fetch_version = 17
        self.requests: list[str] = []
        self.fetches: list[Any] = []
        self.opened: list[FakeConnection] = []
        self.commits: dict[str, dict[tuple[str, int], int]] = {}
        self.notes: dict[tuple[str, str, int], str] = {}
        self.group_error = ErrorCode.NONE
        self.produced: list[tuple[str, int, list[bytes]]] = []
        self.produce_error = ErrorCode.NONE
        self.down: set[int] = set()
        self.before: Callable[[str], None] = lambda name: None
        self.clock: Callable[[], float] = lambda: 0.0
        self.dial: Callable[[str], None] = lambda host: None
        self.before_send: Callable[[str], None] = lambda name: None

    def create(self, name: str, partitions: int = 1, incarnation: int = 1) -> FakeTopic:
        topic_id = (name.encode() + b"%04d" % incarnation).rjust(16, b".")[-16:]
        self.topics[name] = FakeTopic(topic_id, {p: FakePartition() for p in range(partitions)})
        return self.topics[name]

    def connect(self, host: str, port: int, **_: Any) -> FakeConnection:
        self.dial(host)
        if port - PORT in self.down:
            raise BrokerNotAvailable(f"cannot reach {host}:{port}")
        self.opened.append(FakeConnection(self, port - PORT))
        return self.opened[-1]

    def answer(self, request: Any, node: int) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.requests.append(name)
        self.before(name)
        if node in self.down:
            raise ConnectionLost(f"lost the connection to broker {node}")
        return getattr(self, f"answer_{name}")(request, node)

    def answer_Metadata(self, request: Any, node: int) -> Any:
        response = messages.MetadataResponse
        wanted = sorted(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return response(
            brokers=[response.MetadataResponseBroker(node_id=n, host="h", port=PORT + n) for n in range(self.brokers)],
            cluster_id="fake",
            controller_id=0,
            topics=[self.topic_metadata(name) for name in wanted],
        )

    def topic_metadata(self, name: str) -> Any:
        response = messages.MetadataResponse
        topic = self.topics.get(name)
        if topic is None:
            return response.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        partitions = [
            response.MetadataResponsePartition(
                partition_index=index,
                leader_id=p.leader,
                leader_epoch=p.leader_epoch,
                replica_nodes=[*range(p.replicas)],
            )
            for index, p in topic.partitions.items()
        ]
        return response.MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions)

    def answer_DescribeCluster(self, request: Any, node: int) -> Any:
        response = messages.DescribeClusterResponse
        listed = self.brokers + (self.fenced if request.include_fenced_brokers else 0)
        brokers = [
            response.DescribeClusterBroker(broker_id=n, host="h", port=PORT + n, is_fenced=n >= self.brokers)
            for n in range(listed)
        ]
        return response(cluster_id="fake", controller_id=0, brokers=brokers)

    def answer_DescribeConfigs(self, request: Any, node: int) -> Any:
        response = messages.DescribeConfigsResponse
        entry = response.DescribeConfigsResourceResult
        return response(
            results=[
                response.DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[entry(name=SETTING, value=self.growth[each.resource_name], config_source=1)]
                    if each.resource_name in self.growth
                    else [],
                )
                for each in request.resources
            ]
        )

    def answer_CreateTopics(self, request: Any, node: int) -> Any:
        response = messages.CreateTopicsResponse
        self.created += request.topics
        for topic in request.topics:
            if not self.create_error:
                self.create(topic.name, topic.num_partitions)
        outcomes = [
            response.CreatableTopicResult(name=topic.name, error_code=self.create_error, error_message="too few")
            for topic in request.topics
        ]
        return response(topics=outcomes)

    def answer_ListOffsets(self, request: Any, node: int) -> Any:
        response = messages.ListOffsetsResponse
        topics = []
        for topic in request.topics:
            answers = []
            for asked in topic.partitions:
                p = self.topics[topic.name].partitions[asked.partition_index]
                stable = p.end if p.stable_end is None or not request.isolation_level else p.stable_end
                if asked.timestamp in (-1, -2):
                    offset = stable if asked.timestamp == -1 else p.start
                else:
                    offset = next((o for t, o in p.timestamps if t >= asked.timestamp and o < stable), -1)
                answers.append(
                    response.ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset)
                )
            topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return response(topics=topics)

    def answer_Fetch(self, request: Any, node: int) -> Any:
        response = messages.FetchResponse
        (asked,) = request.topics
        (wanted,) = asked.partitions
        data = response.PartitionData(partition_index=wanted.partition, high_watermark=-1)
        by_id = {topic.topic_id: topic for topic in self.topics.values()}
        topic = self.topics.get(asked.topic) if asked.topic else by_id.get(bytes(asked.topic_id))
        if topic is None:
            data.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if asked.topic else ErrorCode.UNKNOWN_TOPIC_ID
        else:
            p = topic.partitions[wanted.partition]
            if wanted.current_leader_epoch not in (-1, p.leader_epoch):
                late = wanted.current_leader_epoch < p.leader_epoch
                data.error_code = ErrorCode.FENCED_LEADER_EPOCH if late else ErrorCode.UNKNOWN_LEADER_EPOCH
            else:
                self.fetch_partition(p, wanted.fetch_offset, request, node, data)
        found = response.FetchableTopicResponse(topic=asked.topic, topic_id=asked.topic_id, partitions=[data])
        return response(responses=[found])

    def fetch_partition(self, p: FakePartition, offset: int, request: Any, node: int, data: Any) -> None:
        data.high_watermark, data.log_start_offset = p.end, p.start
        data.last_stable_offset = p.end if p.stable_end is None else p.stable_end
        if p.leader != node:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif not p.start <= offset <= p.end:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            data.records = p.read(offset)
            if request.isolation_level:
                aborted = messages.FetchResponse.AbortedTransaction
                data.aborted_transactions = [aborted(producer_id=i, first_offset=o) for i, o in p.aborted]

    def answer_Produce(self, request: Any, node: int) -> Any:
        response = messages.ProduceResponse
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        self.produced.append((topic.name, data.index, [r.value or b"" for r in check_records(bytes(data.records))]))
        answer = response.PartitionProduceResponse(index=data.index, error_code=self.produce_error)
        return response(responses=[response.TopicProduceResponse(name=topic.name, partition_responses=[answer])])

    def answer_FindCoordinator(self, request: Any, node: int) -> Any:
        response = messages.FindCoordinatorResponse
        found = [response.Coordinator(key=key, node_id=0, host="h", port=PORT) for key in request.coordinator_keys]
        return response(coordinators=found)

    def answer_OffsetCommit(self, request: Any, node: int) -> Any:
        response = messages.OffsetCommitResponse
        group = self.commits.setdefault(request.group_id, {})
        topics = []
        for topic in request.topics:
            answers = []
            for p in topic.partitions:
                if not self.group_error:
                    group[topic.name, p.partition_index] = p.committed_offset
                    self.notes[request.group_id, topic.name, p.partition_index] = p.committed_metadata or ""
                answers.append(
                    response.OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=self.group_error
                    )
                )
            topics.append(response.OffsetCommitResponseTopic(name=topic.name, partitions=answers))
        return response(topics=topics)

    def answer_OffsetFetch(self, request: Any, node: int) -> Any:
        response = messages.OffsetFetchResponse
        (group,) = request.groups
        topics = []
        for topic in group.topics:
            answers = [
                response.OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=self.commits.get(group.group_id, {}).get((topic.name, index), -1),
                    metadata=self.notes.get((group.group_id, topic.name, index), ""),
                )
                for index in topic.partition_indexes
            ]
            topics.append(response.OffsetFetchResponseTopics(name=topic.name, partitions=answers))
        return response(groups=[response.OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)])

    def answer_ListGroups(self, request: Any, node: int) -> Any:
        response = messages.ListGroupsResponse
        return response(groups=[response.ListedGroup(group_id=name, protocol_type="consumer") for name in self.commits])


class FakeConnection:
    """What `BlockingConnection` offers, answered by the cluster object."""

    def __init__(self, cluster: FakeCluster, node: int) -> None:
        self._cluster = cluster
        self._node = node
        self._waiting: deque[tuple[Any, int]] = deque()
        self.closed = False

    @property
    def unanswered(self) -> int:
        return len(self._waiting)

    def version_for(self, request: Any, highest: int | None = None) -> int:
        name = getattr(request, "__name__", type(request).__name__)
        version = self._cluster.fetch_version if name == "FetchRequest" else request.MAX_VERSION
        return version if highest is None else min(version, highest)

    def supports(self, api_key: int, version: int = 0) -> bool:
        return self._cluster.supported.get(api_key, -1) >= version

    def send(self, message: Any, version: int | None = None, *, highest: int | None = None) -> int:
        assert not self.closed
        name = type(message).__name__.removesuffix("Request")
        self._cluster.before_send(name)
        if name == "Fetch":
            self._cluster.fetches.append(message)
        version = self.version_for(message, highest) if version is None else version
        self._waiting.append((type(message).decode(message.encode(version), version), version))
        return version

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        message, version = self._waiting.popleft()
        response = self._cluster.answer(message, self._node)
        return type(response).decode(memoryview(response.encode(version)), version)

    def request(
        self, message: Any, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        self.send(message, version, highest=highest)
        return self.receive()

    def close(self) -> None:
        self.closed = True
