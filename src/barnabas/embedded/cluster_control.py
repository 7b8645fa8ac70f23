"""The commands that a `barnabas.Cluster` sends to its nodes, and the nodes' answers.

    {"plan": {…}}                            the faults from now on                     {}
    {"look": [TOPIC, PARTITION] or null}     what this node knows of the cluster        {"offset", "brokers", "leads", "behind",
                                                                                         "partition"}
    {"create": [NAME, PARTITIONS, COPIES, CONFIG]}                                      {}
    {"move": [TOPIC, PARTITION, REPLICAS]}   the first one leads                        {}
    {"secure": [USERS, ACLS]}                (`users_and_acls`)                         {"offset"}
    {"clear": null}                          delete what clients created                {"offset"}
    {"forget": OFFSET}                       once the metadata is there, clear memory   {}
    {"requests": [API KEY, WHERE]}           what clients have asked                    {"requests": [REQUEST, …]}
    {"forget_requests": null}                                                           {}

An answer to a command that fails is {"error": CODE, "message": TEXT}, with Kafka's code.

The commands that change something go to the active controller as a broker's own requests do, so no fault for clients' requests meets
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.embedded.fault_plan import NO_CLOCK_FAULT, NO_DISK_FAULT, FaultPlan, Where
from barnabas.embedded.fault_tickets import FaultTickets
from barnabas.embedded.faulty_disk import FaultyDisk
from barnabas.embedded.link_faults import LinkFaults
from barnabas.embedded.moved_clock import MovedClock
from barnabas.embedded.request_faults import OrderedFault, RequestFaults
from barnabas.embedded.request_log import RequestLog
from barnabas.embedded.users_and_acls import UsersAndAcls
from barnabas.metadata.image import MetadataImage
from barnabas.node.as_new import make_as_new
from barnabas.node.node import Node
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
)

__all__ = ["ClusterControl"]

_PREFERRED = 0
_LOOK_S = 0.005
_SHOWN = 5


class ClusterControl:
    """The commands of one node that serves.

    Args:
        disk, clock: the node's own; None if no plan has faults of them.

    Attributes:
        requests: the faults in its answers.
    """

    def __init__(
        self, node: Node, links: LinkFaults, disk: FaultyDisk | None = None, clock: MovedClock | None = None
    ) -> None:
        self._node = node
        self._links = links
        self._disk = disk
        self._clock = clock
        services = node.broker.services
        self.requests = RequestFaults(node.broker.dispatcher, services.loop, RequestLog(services.node_id))

    def __repr__(self) -> str:
        return f"<ClusterControl {self._links!r} {self.requests!r}>"

    async def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command and return the answer."""
        ((verb, argument),) = command.items()
        try:
            if verb == "look":
                return self._look(argument)
            if verb == "plan":
                self.apply(FaultPlan.from_json(self._node.config.node_id, argument))
            elif verb == "requests":
                key, where = argument
                return {"requests": self.requests.log.found(key, Where(*where))}
            elif verb == "forget_requests":
                self.requests.log.clear()
            elif verb == "create":
                await self._create(*argument)
            elif verb == "move":
                await self._move(*argument)
            elif verb == "secure":
                await UsersAndAcls.from_json(argument).make(self._node.broker.controller, lambda: self._image)
                return {"offset": self._image.provenance.offset}
            elif verb == "clear":
                await make_as_new(self._node.broker.controller, lambda: self._image)
                return {"offset": self._image.provenance.offset}
            else:
                assert verb == "forget", verb
                await self._forget(argument)
        except KafkaError as error:
            return {"error": int(error.code), "message": error.message}
        return {}

    def apply(self, plan: FaultPlan) -> None:
        """Let these faults happen, and no others."""
        node_id = self._node.config.node_id
        self._links.apply(plan)
        if self._disk is not None:
            self._disk.apply(plan.disks.get(node_id, NO_DISK_FAULT))
        if self._clock is not None:
            self._clock.apply(plan.clocks.get(node_id, NO_CLOCK_FAULT))
        self.requests.apply(
            OrderedFault(fault, FaultTickets(fault.tickets, fault.times, fault.nth))
            for fault in plan.requests.get(node_id, ())
        )

    @property
    def _image(self) -> MetadataImage:
        return self._node.broker.image

    def _look(self, wanted: Sequence[Any] | None) -> dict[str, Any]:
        image = self._image
        local = self._node.quorum.local_controller
        behind = [
            f"{topic.name}-{index}: leader {each.leader}, in sync {list(each.isr)} of {list(each.replicas)}"
            for topic in image.topics.by_name.values()
            for index, each in topic.partitions.items()
            if each.leader < 0 or len(each.isr) < len(each.replicas) or each.is_reassigning
        ]
        found = None if wanted is None else image.topics.partition(*wanted)
        return {
            "offset": image.provenance.offset,
            "brokers": [broker.id for broker in image.cluster.live_brokers()],
            "leads": local is not None and local.is_active,
            "behind": behind[:_SHOWN],
            "partition": None if found is None else [found.leader, found.isr, found.replicas],
        }

    async def _create(self, name: str, partitions: int, replicas: int, config: dict[str, str]) -> None:
        configs = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in config.items()]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=configs
        )
        response = await self._ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=[topic]))
        _check(response.topics[0])

    async def _move(self, topic: str, partition: int, replicas: list[int]) -> None:
        order = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=partition, replicas=replicas)
        wanted = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[order])
        response = await self._ask(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(topics=[wanted])
        )
        _check(response.responses[0].partitions[0])
        named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])
        response = await self._ask(
            ApiKey.ELECT_LEADERS, ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=[named])
        )
        result = response.replica_election_results[0].partition_result[0]
        if result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
            _check(result)

    async def _ask(self, key: ApiKey, request: Any) -> Any:
        response = await self._node.broker.controller.handle(key, request.MAX_VERSION, request)
        _check(response)
        return response

    async def _forget(self, offset: int) -> None:
        while self._image.provenance.offset < offset:
            await asyncio.sleep(_LOOK_S)
        self._node.broker.forget_sessions()
        self.requests.log.clear()


def _check(result: Any) -> None:
    """Raise the error of a result, if it has one."""
    if code := getattr(result, "error_code", 0):
        raise error_for(code, result.error_message)
