"""How long a node holds its event loop when it knows many partitions: one phase after the other, in one process.

    python -m bench.many_partitions [--topics 400] [--partitions 250] [--logs 8000] [--only NAME …]

The node is the whole broker and controller. The partitions have their replicas on three other brokers, which this process plays: they
register and send heartbeats. So the log of each is somewhere else, except for `--logs` partitions of the node's own, each with a
record. A turn is what the loop does between two looks at its sockets, in CPU seconds of its thread, which other load on the machine
hardly changes. What the executor does is left out. Garbage is collected as a node does; a full collection comes before each phase.

Each phase prints its longest turn, the number of turns, and the functions that a sampler saw most in long turns.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.api.served_node import Serving

from barnabas.api import APIS
from barnabas.metadata.topics_image import TopicImage
from barnabas.node.full_collections import FullCollections
from barnabas.protocol import messages
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from bench.sampled_turns import SAMPLE_SECONDS, SampledTurns

OTHERS = (101, 102, 103)
FOURTH = 104
SESSION_MS = 2_000_000_000
TOPICS_PER_REQUEST = 1_000
RECORDS_PER_REQUEST = 9_000
SETTINGS = {
    "broker_session_timeout_ms": str(SESSION_MS),
    "broker_heartbeat_interval_ms": "1000000",
    "barnabas_metrics_listen": "127.0.0.1:0",
    "max_request_partition_size_limit": "1000000",
}


class Phases:
    """The node, and what is measured on it."""

    def __init__(self, folder: Path, topics: int, partitions: int, logs: int) -> None:
        self.folder, self.logs, self.partitions = folder, logs, partitions
        self.names = [f"t{number:06}" for number in range(topics)]
        self.open()
        self.epochs: dict[int, int] = {}

    def open(self) -> None:
        self.loop = SampledTurns()
        self.serving = Serving(self.folder, loop=self.loop, is_started=False, **SETTINGS)

    @property
    def controller(self) -> Any:
        return self.serving.node.quorum.local_controller

    @property
    def image(self) -> Any:
        return self.serving.server.services.image()

    def start(self) -> None:
        from barnabas.api.serving.dispatch import Dispatcher

        self.loop.run_until_complete(self.serving.node.start())
        self.serving.dispatcher = Dispatcher(self.serving.server.services)
        gc.unfreeze()
        FullCollections(self.loop).begin()

    # The other brokers

    def control(self, request: Any) -> Any:
        """Ask the controller as a broker does."""
        version = request.MAX_VERSION

        async def asked() -> Any:
            return await self.controller.handle(request.API_KEY, version, request)

        return self.loop.run_until_complete(asked())

    def register(self, broker: int, incarnation: int = 0, previous_epoch: int = -1) -> None:
        features = [
            messages.BrokerRegistrationRequest.Feature(name=name, min_supported_version=0, max_supported_version=99)
            for name in self.image.features.all_finalized()
        ]
        listener = messages.BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"b{broker}", port=9092)
        answer = self.control(
            messages.BrokerRegistrationRequest(
                broker_id=broker,
                cluster_id=self.serving.node.cluster_id,
                incarnation_id=Uuid(bytes([broker + 100 - incarnation] * 16)),
                listeners=[listener],
                features=features,
                log_dirs=[Uuid(bytes([broker] * 16))],
                previous_broker_epoch=previous_epoch,
            )
        )
        self.epochs[broker] = answer.broker_epoch

    def beat(self, broker: int, **fields: Any) -> Any:
        return self.control(
            messages.BrokerHeartbeatRequest(
                broker_id=broker,
                broker_epoch=self.epochs[broker],
                current_metadata_offset=self.image.provenance.offset,
                **fields,
            )
        )

    def spin(self, seconds: float = 1.0) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    # Making the partitions

    def _assigned(self, index: int) -> list[int]:
        return [OTHERS[(index + at) % 3] for at in range(3)]

    def create(self) -> None:
        for broker in (*OTHERS, FOURTH):
            self.register(broker)
            self.beat(broker)
        Topic = messages.CreateTopicsRequest.CreatableTopic
        Assigned = messages.CreateTopicsRequest.CreatableReplicaAssignment
        per_request = max(min(TOPICS_PER_REQUEST, RECORDS_PER_REQUEST // (self.partitions + 1)), 1)
        first = min(self.partitions, RECORDS_PER_REQUEST)
        for start in range(0, len(self.names), per_request):
            topics = [
                Topic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        Assigned(partition_index=index, broker_ids=self._assigned(index)) for index in range(first)
                    ],
                )
                for name in self.names[start : start + per_request]
            ]
            answer = self.serving.ask(messages.CreateTopicsRequest(topics=topics, timeout_ms=60_000))
            assert not any(topic.error_code for topic in answer.topics), answer.topics[0]
        for name in self.names:
            for count in range(2 * first, self.partitions + first, first):
                self._grow(name, min(count, self.partitions))

    def _grow(self, name: str, count: int) -> None:
        Topic = messages.CreatePartitionsRequest.CreatePartitionsTopic
        Assigned = messages.CreatePartitionsRequest.CreatePartitionsAssignment
        present = len(self.image.topics.by_name[name].partitions)
        assigned = [Assigned(broker_ids=self._assigned(index)) for index in range(present, count)]
        topic = Topic(name=name, count=count, assignments=assigned)
        answer = self.serving.ask(messages.CreatePartitionsRequest(topics=[topic], timeout_ms=60_000))
        assert not answer.results[0].error_code, answer.results[0]

    def create_logs(self) -> None:
        """Make the node's own partitions, each with a record."""
        Topic = messages.CreateTopicsRequest.CreatableTopic
        Assigned = messages.CreateTopicsRequest.CreatableReplicaAssignment
        own = self.serving.server.config.node_id
        for start in range(0, self.logs, 1_000):
            name = f"own{start:06}"
            assignments = [
                Assigned(partition_index=index, broker_ids=[own]) for index in range(min(1_000, self.logs - start))
            ]
            topic = Topic(name=name, num_partitions=-1, replication_factor=-1, assignments=assignments)
            topic.configs = [messages.CreateTopicsRequest.CreatableTopicConfig(name="cleanup.policy", value="compact")]
            answer = self.serving.ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
            assert not answer.topics[0].error_code, answer.topics[0]
        self.append()

    def load_groups(self) -> None:
        """Have the node coordinate groups: all partitions of `__consumer_offsets`."""
        self.serving.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6)
        self.spin(10)

    def append(self, size: int = 1) -> None:
        Topic = messages.ProduceRequest.TopicProduceData
        Partition = messages.ProduceRequest.PartitionProduceData
        for name in self.own():
            for index in self.image.topics.by_name[name].partitions:
                batch = build_batch([(0, b"k", b"v" * size, ())])
                request = messages.ProduceRequest(acks=1, timeout_ms=1000)
                request.topic_data = [Topic(name=name, partition_data=[Partition(index=index, records=batch)])]
                self.serving.ask(request, 9)

    def own(self) -> list[str]:
        return [name for name in self.image.topics.by_name if name.startswith("own")]

    def others(self) -> list[TopicImage]:
        by_name = self.image.topics.by_name
        return [by_name[name] for name in self.names if name in by_name]

    # Measuring

    def measure(self, name: str, work: Callable[[], Any]) -> Any:
        """Do some work and what follows from it, and print its longest turns."""
        gc.collect()
        self.loop.reset(time.thread_time_ns)
        result = work()
        self.spin()
        loop = self.loop
        print(f"{loop.longest / 1e6:8.1f} ms  {loop.turns:6} turns  {name}", flush=True)
        for taken, samples in sorted(loop.long_turns, reverse=True)[:2]:
            print(f"       {taken / 1e6:.1f} ms", file=sys.stderr)
            for what, count in collections.Counter(samples).most_common(5):
                print(f"          {count * SAMPLE_SECONDS * 1000:4.0f} ms  {what}", file=sys.stderr)
        return result

    def send(self, request: Any, version: int | None = None) -> None:
        """Send a request; its bytes are made before, and its response is not decoded."""
        key = request.API_KEY
        version = APIS[key].max_version if version is None else version
        body = request.encode(version)
        self.loop.reset(time.thread_time_ns)
        self.serving.send(key, version, body)

    def run(self, only: list[str]) -> None:
        self.start()
        self.measure("(create the partitions)", self.create)
        self.measure("(create the node's own partitions)", self.create_logs)
        self.measure("(load the coordinators of groups)", self.load_groups)
        for name, work in self.phases():
            if not only or any(each in name for each in only):
                self.measure(name, work)

    def phases(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        yield from self._readers_of_metadata()
        yield from self._readers_of_logs()
        yield from self._writers()
        yield from self._brokers()
        yield from self._node()

    def _readers_of_metadata(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        all_topics = self.others()
        Metadata = messages.MetadataRequest
        yield "Metadata 12, all topics", lambda: self.send(Metadata(topics=None), 12)
        yield "Metadata 13, all topics", lambda: self.send(Metadata(topics=None), 13)
        named = [Metadata.MetadataRequestTopic(name=topic.name) for topic in all_topics]
        yield "Metadata 12, all topics by name", lambda: self.send(Metadata(topics=named), 12)
        ids = [Metadata.MetadataRequestTopic(name=None, topic_id=Uuid(topic.topic_id)) for topic in all_topics]
        yield "Metadata 12, all topics by id", lambda: self.send(Metadata(topics=ids), 12)
        Pages = messages.DescribeTopicPartitionsRequest
        for limit in (2000, 1_000_000):
            yield (
                f"DescribeTopicPartitions, all, pages of {limit}",
                lambda limit=limit: self.send(Pages(topics=[], response_partition_limit=limit), 0),
            )
        listed = [Pages.TopicRequest(name=topic.name) for topic in all_topics]
        yield (
            "DescribeTopicPartitions, all by name",
            lambda: self.send(Pages(topics=listed, response_partition_limit=2000), 0),
        )
        Configs = messages.DescribeConfigsRequest
        resources = [
            Configs.DescribeConfigsResource(resource_type=2, resource_name=topic.name, configuration_keys=None)
            for topic in all_topics[:2_000]
        ]
        yield f"DescribeConfigs of {len(resources)} topics", lambda: self.send(Configs(resources=resources), 4)
        yield (
            f"DescribeConfigs of {len(resources)} topics, with synonyms",
            lambda: self.send(Configs(resources=resources, include_synonyms=True, include_documentation=True), 4),
        )
        one = [
            Configs.DescribeConfigsResource(
                resource_type=2, resource_name=topic.name, configuration_keys=["retention.ms"]
            )
            for topic in all_topics
        ]
        yield f"DescribeConfigs of {len(one)} topics, one setting", lambda: self.send(Configs(resources=one), 4)
        yield "ListConfigResources", lambda: self.send(messages.ListConfigResourcesRequest(), 1)

    def _readers_of_logs(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        all_topics = self.others()
        Offsets = messages.ListOffsetsRequest
        for what, topics in (
            ("other brokers'", all_topics),
            ("own", [self.image.topics.by_name[n] for n in self.own()]),
        ):
            for timestamp in (-1, 0):
                asked = [
                    Offsets.ListOffsetsTopic(
                        name=topic.name,
                        partitions=[
                            Offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                            for index in topic.partitions
                        ],
                    )
                    for topic in topics
                ]
                yield (
                    f"ListOffsets of {what} partitions, timestamp {timestamp}",
                    lambda asked=asked: self.send(Offsets(replica_id=-1, topics=asked), 9),
                )
        Dirs = messages.DescribeLogDirsRequest
        yield "DescribeLogDirs, all", lambda: self.send(Dirs(topics=None))
        dirs = [Dirs.DescribableLogDirTopic(topic=t.name, partitions=list(t.partitions)) for t in all_topics]
        yield "DescribeLogDirs, all by name", lambda: self.send(Dirs(topics=dirs))
        Quorum = messages.DescribeQuorumRequest
        quorum = [
            Quorum.TopicData(
                topic_name="__cluster_metadata", partitions=[Quorum.PartitionData(partition_index=0)] * 1000
            )
            for _ in range(100)
        ]
        yield "DescribeQuorum of 100,000 entries", lambda: self.send(Quorum(topics=quorum))
        yield "/metrics", self._scrape
        yield "DescribeCluster", lambda: self.send(messages.DescribeClusterRequest())

    def _writers(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        all_topics = self.others()
        Alter = messages.IncrementalAlterConfigsRequest
        for count in (900, 9_000):
            resources = [
                Alter.AlterConfigsResource(
                    resource_type=2,
                    resource_name=topic.name,
                    configs=[Alter.AlterableConfig(name="retention.ms", config_operation=0, value=str(count))],
                )
                for topic in all_topics[:count]
            ]
            yield (
                f"IncrementalAlterConfigs of {len(resources)} topics",
                lambda resources=resources: self.send(Alter(resources=resources)),
            )
        defaults = Alter.AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[Alter.AlterableConfig(name="log.retention.ms", config_operation=0, value="12345")],
        )
        yield "IncrementalAlterConfigs of the brokers' defaults", lambda: self.send(Alter(resources=[defaults]))
        min_isr = Alter.AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[Alter.AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")],
        )
        yield "IncrementalAlterConfigs of min.insync.replicas", lambda: self.send(Alter(resources=[min_isr]))
        Configs = messages.ListConfigResourcesRequest
        yield "ListConfigResources, with settings", lambda: self.send(Configs(), 1)
        Elect = messages.ElectLeadersRequest
        yield (
            "ElectLeaders, preferred, all, none needed",
            lambda: self.send(Elect(election_type=0, topic_partitions=None, timeout_ms=60_000)),
        )
        named = [Elect.TopicPartitions(topic=t.name, partitions=list(t.partitions)) for t in all_topics]
        yield (
            "ElectLeaders, preferred, all by name, none needed",
            lambda: self.send(Elect(election_type=0, topic_partitions=named, timeout_ms=60_000)),
        )
        List = messages.ListPartitionReassignmentsRequest
        for count in (900, 4_000, 9_000):
            yield (
                f"AlterPartitionReassignments of {count}",
                lambda count=count: self._reassign(count, [FOURTH, 101, 102]),
            )
            yield (
                f"AlterPartitionReassignments, cancel {count}",
                lambda count=count: self._reassign(count, None),
            )
        yield (
            "AlterPartitionReassignments of 9000 again",
            lambda: self._reassign(9_000, [103, 102, 101]),
        )
        yield "ListPartitionReassignments, all", lambda: self.send(List(topics=None, timeout_ms=60_000))
        listed = [
            List.ListPartitionReassignmentsTopics(name=t.name, partition_indexes=list(t.partitions)) for t in all_topics
        ]
        yield (
            "ListPartitionReassignments, all by name",
            lambda: self.send(List(topics=listed, timeout_ms=60_000)),
        )

    def _reassign(self, count: int, replicas: list[int] | None) -> None:
        Move = messages.AlterPartitionReassignmentsRequest
        topics, left = [], count
        for topic in self.others():
            indexes = list(topic.partitions)[:left]
            left -= len(indexes)
            moved = [Move.ReassignablePartition(partition_index=index, replicas=replicas) for index in indexes]
            topics.append(Move.ReassignableTopic(name=topic.name, partitions=moved))
            if not left:
                break
        self.send(Move(topics=topics, timeout_ms=60_000))

    def _brokers(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        yield "a broker with a third of the leaders is fenced", lambda: self._fence(101)
        yield "it is unfenced", lambda: self.beat(101)
        yield "its replicas join the ISR again", lambda: self._rejoin(101)
        yield "the automatic leader balance", lambda: self.spin(self._until_balance())
        for _ in range(2):
            yield "controlled shutdown, first heartbeat", lambda: self.beat(102, want_shut_down=True)
        yield "the others have read it", lambda: [self.beat(each) for each in (101, 103, FOURTH)]
        yield "controlled shutdown, last heartbeat", lambda: self.beat(102, want_shut_down=True)
        yield "it registers again", lambda: self._register_again(102)
        yield "it is unfenced", lambda: self.beat(102)
        yield "all three are fenced", lambda: [self._fence(each) for each in OTHERS]
        yield "ElectLeaders, unclean, all", self._elect_unclean
        yield "all three are unfenced", lambda: [self.beat(each) for each in OTHERS]
        yield "one registers again after a crash", lambda: self._crash(103)

    def _fence(self, broker: int) -> None:
        self.controller.active.broker_has_died(broker, self.epochs[broker])
        self.spin()

    def _register_again(self, broker: int) -> None:
        self.register(broker, 1, self.epochs[broker])

    def _crash(self, broker: int) -> None:
        self.controller.active.sessions.disconnected.add(broker)
        self.register(broker, 2)

    def _rejoin(self, broker: int) -> None:
        """Let the leaders take a broker back into their ISRs."""
        Alter = messages.AlterPartitionRequest
        by_leader: dict[int, list[tuple[TopicImage, int, Any]]] = {}
        for topic in self.others():
            for index, partition in topic.partitions.items():
                if broker in partition.replicas and broker not in partition.isr and partition.leader >= 0:
                    by_leader.setdefault(partition.leader, []).append((topic, index, partition))
        for leader, changes in by_leader.items():
            for start in range(0, len(changes), 1_000):
                topics: dict[bytes, Any] = {}
                for topic, index, partition in changes[start : start + 1_000]:
                    entry = topics.setdefault(topic.topic_id, Alter.TopicData(topic_id=topic.topic_id))
                    isr = [
                        Alter.BrokerState(broker_id=each, broker_epoch=self.epochs[each])
                        for each in (*partition.isr, broker)
                    ]
                    entry.partitions.append(
                        Alter.PartitionData(
                            partition_index=index,
                            leader_epoch=partition.leader_epoch,
                            new_isr_with_epochs=isr,
                            partition_epoch=partition.partition_epoch,
                        )
                    )
                answer = self.control(
                    Alter(broker_id=leader, broker_epoch=self.epochs[leader], topics=list(topics.values()))
                )
                assert not answer.error_code, answer

    def _until_balance(self) -> float:
        self.serving.now_ms += 301_000
        return 301.0

    def _elect_unclean(self) -> None:
        Elect = messages.ElectLeadersRequest
        self.send(Elect(election_type=1, topic_partitions=None, timeout_ms=60_000))

    def _scrape(self) -> None:
        metrics = self.serving.node.metrics
        assert metrics is not None
        self.loop.run_until_complete(metrics._metrics())

    def _node(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        yield "a snapshot of the metadata", self._snapshot
        yield "twenty seconds of housekeeping", lambda: self._housekeeping(20)
        # More than index.interval.bytes, so that each index has an entry to write.
        self.append(5_000)
        self.append(5_000)
        yield "housekeeping, all checkpoints and index files", lambda: self._housekeeping(70)
        self._alter_own("flush.ms", "1000")
        self.append()
        yield "housekeeping, all logs are flushed", lambda: self._housekeeping(10)
        self._alter_own("segment.ms", "1000")
        self.serving.now_ms += 10_000
        for _ in range(3):
            self.append()
        self._alter_own("min.cleanable.dirty.ratio", "1.0")
        yield "housekeeping, logs of several segments are measured for compaction", lambda: self._housekeeping(60)
        yield "housekeeping, retention", lambda: self._housekeeping(330)
        yield "a setting of the brokers, for the node's own topics", self._broker_setting
        names = self.names[:10_000]
        yield f"DeleteTopics of {len(names)} topics", lambda: self._delete(names)
        yield f"DeleteTopics of {len(self.own()) // 2} own topics", lambda: self._delete(self.own()[::2])
        yield "the node stops", self._stop
        yield "the node starts", self._restart
        yield "a minute after the start", lambda: self._housekeeping(60)

    def _snapshot(self) -> None:
        self.loop.run_until_complete(self.serving.node.quorum._snapshots.write(self.image))

    def _housekeeping(self, seconds: int) -> None:
        for _ in range(seconds):
            self.serving.now_ms += 1_000
            self.spin(1.0)

    def _alter_own(self, name: str, value: str) -> None:
        Alter = messages.IncrementalAlterConfigsRequest
        change = Alter.AlterableConfig(name=name, config_operation=0, value=value)
        resources = [
            Alter.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change]) for topic in self.own()
        ]
        self.send(Alter(resources=resources))

    def _broker_setting(self) -> None:
        Alter = messages.IncrementalAlterConfigsRequest
        defaults = Alter.AlterConfigsResource(
            resource_type=4,
            resource_name="",
            configs=[Alter.AlterableConfig(name="log.retention.ms", config_operation=0, value="12346")],
        )
        self.send(Alter(resources=[defaults]))

    def _delete(self, names: list[str]) -> None:
        Delete = messages.DeleteTopicsRequest
        topics = [Delete.DeleteTopicState(name=name) for name in names]
        self.send(Delete(topics=topics, timeout_ms=60_000), 6)

    def _stop(self) -> None:
        self.loop.run_until_complete(self.serving.node.stop())

    def _restart(self) -> None:
        self.loop.end()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.open()
        self.loop.begin()
        self.loop.reset(time.thread_time_ns)
        self.start()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.many_partitions", description=__doc__.splitlines()[0])
    parser.add_argument("--topics", type=int, default=400)
    parser.add_argument("--partitions", type=int, default=250, help="of each topic")
    parser.add_argument("--logs", type=int, default=8_000, help="partitions of the node's own")
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        phases = Phases(Path(folder), args.topics, args.partitions, args.logs)
        phases.loop.begin()
        try:
            phases.run(args.only)
        finally:
            phases.loop.end()


if __name__ == "__main__":
    main()
