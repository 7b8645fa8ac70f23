"""The commands that a `barnabas.Cluster` sends to its nodes, and the nodes' answers.

    {"plan": {…}}                            the faults from now on                     {}
    {"look": [TOPIC, PARTITION] or null}     what this node knows of the cluster        {"offset", "brokers", "leads", "behind",
                                                                                         "partition"}
    {"create": [NAME, PARTITIONS, COPIES, CONFIG]}                                      {}
    {"move": [TOPIC, PARTITION, REPLICAS]}   the first one leads                        {}
    {"secure": [USERS, ACLS]}                (`users_and_acls`)                         {"offset"}
    {"clear": null}                          delete what clients created                {"offset"}
    {"forget": OFFSET}                       once the metadata is there, clear memory   {}

An answer to a command that fails is {"error": CODE, "message": TEXT}, with Kafka's code.

The commands that change something go to the active controller as a broker's own requests do, so no fault for clients' requests meets
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.embedded.fault_plan import FaultPlan
from barnabas.embedded.fault_tickets import FaultTickets
from barnabas.embedded.link_faults import LinkFaults
from barnabas.embedded.request_faults import OrderedFault, RequestFaults
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
    """The commands of one node that serves."""

    def __init__(self, node: Node, links: LinkFaults) -> None:
        self._node = node
        self._links = links
        self._requests = RequestFaults(node.broker.dispatcher, node.broker.services.loop)

    def __repr__(self) -> str:
        return f"<ClusterControl {self._links!r} {self._requests!r}>"

    async def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out a command and return the answer."""
        ((verb, argument),) = command.items()
        try:
            if verb == "look":
                return self._look(argument)
            if verb == "plan":
                self.apply(FaultPlan.from_json(self._node.config.node_id, argument))
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
        self._links.apply(plan)
        node_id = self._node.config.node_id
        ordered = [
            OrderedFault(fault.api_key, fault.error_code, FaultTickets(fault.tickets, fault.times))
            for fault in plan.requests.get(node_id, ())
        ]
        self._requests.apply(ordered, plan.slow.get(node_id, 0.0))

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


def _check(result: Any) -> None:
    """Raise the error of a result, if it has one."""
    if code := getattr(result, "error_code", 0):
        raise error_for(code, result.error_message)
