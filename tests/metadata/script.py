"""Golden scripts of the controller (see `tests.golden`).

    > create a partitions=2
    log TopicRecord name=a topic_id=#1
    log PartitionRecord partition_id=0 topic_id=#1 replicas=[1] isr=[1] leader=1
    a NONE partitions=2 replicas=1 id=#1

A trace lists the records in the order of the log, then the answer, one line an item. Uuids are numbered in the order in
which they appear; fields at the record's own default are left out.

Commands: see the methods `do_...` of `ScriptRunner`. A word `key=value` is an option, any other an argument; lists are
separated by commas.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.metadata.metadata_batch_loader import MetadataBatchLoader
from barnabas.metadata.record_codec import encode_record
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.golden import Script, options
from tests.metadata.controller_harness import ControllerHarness

RESOURCES = {"topic": 2, "broker": 4, "logger": 8, "client-metrics": 16, "group": 32}
OPERATIONS = {"set": 0, "delete": 1, "append": 2, "subtract": 3}


class ScriptRunner(Script):
    def __init__(self) -> None:
        super().__init__()
        self.harness = ControllerHarness()
        self.epochs: dict[int, int] = {}
        self.uuids: dict[bytes, str] = {}
        self.seen = 0

    def do(self, name: str, words: list[str]) -> None:
        given = options(words)
        arguments = [word for word in words if "=" not in word]
        self.skip_log()
        try:
            answer = list(getattr(self, f"do_{name.replace('-', '_')}")(arguments, given) or [])
        except KafkaError as error:
            answer = [f"refused {error.code.name} {error.message}"]
        self.trace += [*self.new_records(), *answer]

    def skip_log(self) -> None:
        self.seen = self.harness.log.end_offset

    def new_records(self) -> Iterator[str]:
        loader = MetadataBatchLoader()
        for loaded in loader.load(self.harness.log.read(self.seen, self.harness.log.end_offset)):
            for record in loaded.records:
                yield f"log {record.NAME} {self.fields(record)}".rstrip()

    def fields(self, record: Any) -> str:
        blank = type(record)()
        shown = []
        for field in record.FIELDS:
            value = getattr(record, field)
            if value != getattr(blank, field):
                shown.append(f"{field}={self.show(value)}")
        return " ".join(shown)

    def show(self, value: Any) -> str:
        if isinstance(value, bytes):
            return self.uuids.setdefault(value, f"#{len(self.uuids) + 1}")
        if isinstance(value, list):
            return f"[{','.join(self.show(item) for item in value)}]"
        if hasattr(value, "FIELDS"):
            return "/".join(self.show(getattr(value, field)) for field in value.FIELDS)
        return str(value)

    def uuid(self, label: str) -> bytes:
        return next((uuid for uuid, known in self.uuids.items() if known == label), label.encode().ljust(16, b"."))

    @staticmethod
    def outcome(name: object, code: int, message: str | None, more: str = "") -> str:
        return " ".join(f"{name} {ErrorCode(code).name} {message or ''} {more}".split())

    @staticmethod
    def version(options: dict[str, str]) -> dict[str, int]:
        return {"version": int(options.pop("version"))} if "version" in options else {}

    # Commands

    def do_register(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        for word in arguments:
            broker = int(word)
            fields: dict[str, Any] = {"rack": options.get("rack")}
            if "incarnation" in options:
                fields["incarnation_id"] = options["incarnation"].encode().ljust(16, b"-")
            if "after" in options:
                fields["previous_broker_epoch"] = self.epochs[broker] if options["after"] == "stop" else -1
            self.epochs[broker] = self.harness.register(broker, unfence="fenced" not in options, **fields)
            yield f"broker {broker} epoch={self.epochs[broker]}"

    def do_heartbeat(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        broker = int(arguments[0])
        wants: dict[str, Any] = {f"want_{word.replace('-', '_')}": True for word in arguments[1:]}
        if "cordoned" in options:
            wants["cordoned_log_dirs"] = [self.uuid(label) for label in options["cordoned"].split(",") if label]
        answer = self.harness.heartbeat(broker, int(options.get("epoch", self.epochs[broker])), **wants)
        yield f"caught_up={answer.is_caught_up} fenced={answer.is_fenced} shut_down={answer.should_shut_down}"

    def do_unregister(self, arguments: list[str], options: dict[str, str]) -> None:
        self.harness.send(ApiKey.UNREGISTER_BROKER, messages.UnregisterBrokerRequest(broker_id=int(arguments[0])))

    def do_advance(self, arguments: list[str], options: dict[str, str]) -> None:
        self.harness.now_ms += int(arguments[0])
        self.harness.controller.tick()

    def do_restart(self, arguments: list[str], options: dict[str, str]) -> None:
        self.harness.restart()

    def do_create(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        topic = messages.CreateTopicsRequest.CreatableTopic
        config = messages.CreateTopicsRequest.CreatableTopicConfig
        assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment
        special = {"partitions", "replicas", "assign", "validate"}
        request = messages.CreateTopicsRequest(
            topics=[
                topic(
                    name=name,
                    num_partitions=int(options.get("partitions", -1)),
                    replication_factor=int(options.get("replicas", -1)),
                    assignments=[
                        assignment(partition_index=index, broker_ids=[int(b) for b in part.split("+") if b])
                        for index, part in enumerate(options["assign"].split(","))
                    ]
                    if "assign" in options
                    else [],
                    configs=[
                        config(name=key, value=None if value == "null" else value)
                        for key, value in options.items()
                        if key not in special
                    ],
                )
                for name in arguments
            ],
            timeout_ms=1000,
            validate_only="validate" in options,
        )
        for result in self.harness.send(ApiKey.CREATE_TOPICS, request).topics:
            more = ""
            if result.error_code == 0:
                more = f"partitions={result.num_partitions} replicas={result.replication_factor}"
                more += f" id={self.show(result.topic_id)}" if any(result.topic_id) else ""
            yield self.outcome(result.name or "''", result.error_code, result.error_message, more)

    def do_delete(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        state = messages.DeleteTopicsRequest.DeleteTopicState
        entries = [
            state(name=None, topic_id=self.uuid(word)) if word.startswith("#") else state(name=word)
            for word in arguments
        ]
        request = messages.DeleteTopicsRequest(topics=entries, timeout_ms=1000)
        if "version" in options:
            request = messages.DeleteTopicsRequest(topic_names=arguments, timeout_ms=1000)
        for entry in entries if "both" in options else ():
            entry.topic_id = self.uuid(options["both"])
        for result in self.harness.send(ApiKey.DELETE_TOPICS, request, **self.version(options)).responses:
            name = f"id={self.show(result.topic_id)}" if result.name is None else result.name
            yield self.outcome(name, result.error_code, result.error_message)

    def do_grow(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        topic = messages.CreatePartitionsRequest.CreatePartitionsTopic
        assignment = messages.CreatePartitionsRequest.CreatePartitionsAssignment
        assigned = options.get("assign")
        request = messages.CreatePartitionsRequest(
            topics=[
                topic(
                    name=name,
                    count=int(options["to"]),
                    assignments=None
                    if assigned is None
                    else [assignment(broker_ids=[int(b) for b in part.split("+")]) for part in assigned.split(",")],
                )
                for name in arguments
            ],
            timeout_ms=1000,
            validate_only="validate" in options,
        )
        for result in self.harness.send(ApiKey.CREATE_PARTITIONS, request).results:
            yield self.outcome(result.name, result.error_code, result.error_message)

    def do_config(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        """config topic a set retention.ms=5; config topic a delete retention.ms"""
        kind, name, operation, *names = arguments
        config = messages.IncrementalAlterConfigsRequest.AlterableConfig
        changes = [config(name=n, config_operation=OPERATIONS[operation], value=None) for n in names]
        changes += [config(name=n, config_operation=OPERATIONS[operation], value=v) for n, v in options.items()]
        resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=RESOURCES[kind], resource_name="" if name == "default" else name, configs=changes
        )
        request = messages.IncrementalAlterConfigsRequest(resources=[resource])
        for result in self.harness.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses:
            yield self.outcome(name, result.error_code, result.error_message)

    def do_replace_config(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        kind, name = arguments
        config = messages.AlterConfigsRequest.AlterableConfig
        resource = messages.AlterConfigsRequest.AlterConfigsResource(
            resource_type=RESOURCES[kind],
            resource_name=name,
            configs=[config(name=n, value=v) for n, v in options.items()],
        )
        request = messages.AlterConfigsRequest(resources=[resource])
        for result in self.harness.send(ApiKey.ALTER_CONFIGS, request).responses:
            yield self.outcome(name, result.error_code, result.error_message)

    def do_alter_isr(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        """alter-isr a:0 isr=1,2 by=1: the leader proposes this ISR, with the epochs that it and the brokers have."""
        made = messages.AlterPartitionRequest
        name, index = arguments[0].split(":")
        topic = self.harness.controller.image.topics.by_name[name]
        now = topic.partitions[int(index)]
        broker = int(options.get("by", now.leader))
        members = [int(word) for word in options["isr"].split(",")]
        proposal = made.PartitionData(
            partition_index=int(index),
            leader_epoch=int(options.get("leader-epoch", now.leader_epoch)),
            partition_epoch=int(options.get("partition-epoch", now.partition_epoch)),
            leader_recovery_state=int(options.get("recovery", 0)),
            new_isr_with_epochs=[made.BrokerState(broker_id=i, broker_epoch=self.epochs.get(i, -1)) for i in members],
        )
        request = made(
            broker_id=broker,
            broker_epoch=self.epochs[broker],
            topics=[made.TopicData(topic_id=topic.topic_id, partitions=[proposal])],
        )
        (answer,) = self.harness.send(ApiKey.ALTER_PARTITION, request).topics[0].partitions
        more = f"leader={answer.leader_id}/{answer.leader_epoch} isr={answer.isr} epoch={answer.partition_epoch}"
        yield self.outcome(f"{name}-{index}", answer.error_code, None, "" if answer.error_code else more)

    def do_elect(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        kind, version = {"preferred": 0, "unclean": 1}.get(arguments[0], 7), self.version(options)
        partitions = None
        if len(arguments) > 1:
            topics = messages.ElectLeadersRequest.TopicPartitions
            named = [word for word in arguments[1:] if word != "nothing"]
            partitions = [topics(topic=w.split(":")[0], partitions=[int(w.split(":")[1])]) for w in named]
        request = messages.ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=1000)
        for topic in self.harness.send(ApiKey.ELECT_LEADERS, request, **version).replica_election_results:
            if not topic.partition_result:
                yield f"{topic.topic} nothing to elect"
            for result in topic.partition_result:
                name = f"{topic.topic}-{result.partition_id}"
                yield self.outcome(name, result.error_code, result.error_message)

    def do_reassign(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        request = messages.AlterPartitionReassignmentsRequest
        name, index = arguments[0].split(":")
        target = None if options["to"] == "cancel" else [int(word) for word in options["to"].split(",") if word]
        partition = request.ReassignablePartition(partition_index=int(index), replicas=target)
        asked = request(
            topics=[request.ReassignableTopic(name=name, partitions=[partition])],
            allow_replication_factor_change="fixed" not in options,
        )
        for topic in self.harness.send(ApiKey.ALTER_PARTITION_REASSIGNMENTS, asked).responses:
            for result in topic.partitions:
                yield self.outcome(f"{name}-{index}", result.error_code, result.error_message)

    def do_reassignments(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        request = messages.ListPartitionReassignmentsRequest(topics=None)
        if arguments:
            asked = messages.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
            request.topics = [
                asked(name=name, partition_indexes=[int(index)]) for name, index in (w.split(":") for w in arguments)
            ]
        found = self.harness.send(ApiKey.LIST_PARTITION_REASSIGNMENTS, request).topics
        for topic in found:
            for p in topic.partitions:
                moves = f"adding={p.adding_replicas} removing={p.removing_replicas}"
                yield f"{topic.name}-{p.partition_index} replicas={p.replicas} {moves}"
        yield f"reassignments={[topic.name for topic in found]}"

    def do_write_change(self, arguments: list[str], options: dict[str, str]) -> None:
        """Put a PartitionChangeRecord into the log, as a controller with followers would, and restart over it."""
        name, index = arguments[0].split(":")
        topic_id = self.harness.controller.image.topics.by_name[name].topic_id
        values = {key: [int(word) for word in value.split(",")] for key, value in options.items()}
        change = messages.PartitionChangeRecord(
            partition_id=int(index),
            topic_id=topic_id,
            leader=values.pop("leader", [-2])[0],
            **values,  # type: ignore[arg-type]
        )
        self.harness.driver.append([encode_record(change, 33)])
        self.harness.restart()

    def do_quota(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        """quota user:u,client-id:default ip:::1 producer_byte_rate=5 request_percentage=remove"""
        request = messages.AlterClientQuotasRequest
        validate = options.pop("validate", None) is not None
        ops = [
            request.OpData(key=key, value=0 if value == "remove" else float(value), remove=value == "remove")
            for key, value in options.items()
        ]
        entries = []
        for word in arguments:
            parts = [part.split(":", 1) for part in word.split(",") if ":" in part]
            entity = [request.EntityData(entity_type=k, entity_name=None if n == "default" else n) for k, n in parts]
            entries.append(request.EntryData(entity=entity, ops=ops))
        for entry in self.harness.send(
            ApiKey.ALTER_CLIENT_QUOTAS, request(entries=entries, validate_only=validate)
        ).entries:
            name = ",".join(f"{part.entity_type}:{part.entity_name}" for part in entry.entity)
            yield self.outcome(name or "nobody", entry.error_code, entry.error_message)

    def do_quotas(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        for entity, limits in self.harness.controller.image.client_quotas.entities.items():
            yield f"{','.join(f'{kind}:{name}' for kind, name in entity)} {dict(limits)}"

    def do_scram(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        """scram delete:user:mechanism upsert:user:mechanism:iterations"""
        request = messages.AlterUserScramCredentialsRequest()
        for word in arguments:
            operation, name, mechanism, *iterations = word.split(":")
            if operation == "delete":
                request.deletions.append(request.ScramCredentialDeletion(name=name, mechanism=int(mechanism)))
            else:
                upsertion = request.ScramCredentialUpsertion(name=name, mechanism=int(mechanism))
                upsertion.iterations, upsertion.salt, upsertion.salted_password = int(iterations[0]), b"salt", b"salted"
                request.upsertions.append(upsertion)
        for result in self.harness.send(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request).results:
            yield self.outcome(result.user or "''", result.error_code, result.error_message)

    def do_feature(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        kind = {"upgrade": 1, "safe": 2, "unsafe": 3}.get(arguments[0], 9)
        validate, version = options.pop("validate", None) is not None, self.version(options)
        update = messages.UpdateFeaturesRequest.FeatureUpdateKey
        request = messages.UpdateFeaturesRequest(
            feature_updates=[
                update(feature=name, max_version_level=int(level), upgrade_type=kind, allow_downgrade=kind > 1)
                for name, level in options.items()
            ],
            validate_only=validate,
        )
        answer = self.harness.send(ApiKey.UPDATE_FEATURES, request, **version)
        yield self.outcome("features", answer.error_code, answer.error_message)
        for result in answer.results:
            yield self.outcome(result.feature, result.error_code, result.error_message)

    def do_producer_ids(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        broker = int(arguments[0])
        request = messages.AllocateProducerIdsRequest(
            broker_id=broker, broker_epoch=int(options.get("epoch", self.epochs[broker]))
        )
        answer = self.harness.send(ApiKey.ALLOCATE_PRODUCER_IDS, request)
        yield f"block {answer.producer_id_start}+{answer.producer_id_len}"

    def do_quorum(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        request = messages.DescribeQuorumRequest
        name, index = (arguments or ["__cluster_metadata:0"])[0].split(":")
        topic = request.TopicData(topic_name=name, partitions=[request.PartitionData(partition_index=int(index))])
        answer = self.harness.send(ApiKey.DESCRIBE_QUORUM, request(topics=[topic]), **self.version(options))
        (partition,) = answer.topics[0].partitions
        if partition.error_code:
            yield self.outcome(f"{name}-{index}", partition.error_code, partition.error_message)
        else:
            high_watermark = partition.high_watermark
            yield f"leader={partition.leader_id} epoch={partition.leader_epoch} high_watermark={high_watermark}"
        for voter in partition.current_voters:
            directory = self.show(voter.replica_directory_id) if any(voter.replica_directory_id) else "none"
            fetched = f"fetched={voter.last_fetch_timestamp} caught_up={voter.last_caught_up_timestamp}"
            yield f"voter {voter.replica_id} directory={directory} end={voter.log_end_offset} {fetched}"
        for node in answer.nodes:
            yield f"node {node.node_id} {[(each.name, each.host, each.port) for each in node.listeners]}"

    def do_image(self, arguments: list[str], options: dict[str, str]) -> Iterator[str]:
        """The state of partitions, brokers and settings as the image has them."""
        image = self.harness.controller.image
        for broker in image.cluster.brokers.values():
            yield f"broker {broker.id} fenced={broker.fenced} shutting_down={broker.in_controlled_shutdown}"
        for name in sorted(image.topics.by_name):
            topic = image.topics.by_name[name]
            for index, p in topic.partitions.items():
                replicas, isr = list(p.replicas), list(p.isr)
                eligible = f" elr={list(p.elr)}" if p.elr else ""
                eligible += f" last_known={list(p.last_known_elr)}" if p.last_known_elr else ""
                yield f"{name}-{index} leader={p.leader}/{p.leader_epoch} replicas={replicas} isr={isr}{eligible}"
        for kind, name in sorted(image.configs.by_resource):
            if (kind, name) != (4, ""):
                values = dict(sorted(image.configs.for_resource(kind, name).items()))
                yield f"config {kind} {name} {values}"
