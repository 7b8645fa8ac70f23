"""Requests that come before the access control lists are loaded: controllers answer super users at once and nobody else.

Voters talk here over sockets and log in at each other, so a quorum that forms shows that they may.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import free_port

from barnabas.client.channel import Channel
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.log.disk import OsDisk
from barnabas.node.node import Node
from barnabas.protocol import messages as m
from barnabas.protocol.errors import ErrorCode
from barnabas.security.client_security import client_security
from tests.metadata.controller_harness import CLUSTER_ID

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = 'user_node="node-secret" user_alice="alice-secret"'
VOTERS = (1, 2, 3)


class Voters:
    """Three controllers that are not started; `start` begins one of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.ports = {each: free_port() for each in VOTERS}
        self.nodes: list[Node] = []

    def config(self, node_id: int, **more: str) -> BrokerConfig:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self.ports.items())
        return BrokerConfig.from_properties({
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "controller.quorum.election.timeout.ms": "100",
            "controller.quorum.election.backoff.max.ms": "100",
            "listeners": f"CONTROLLER://127.0.0.1:{self.ports[node_id]}",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{MODULE} username="node" password="node-secret" {USERS};'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:node",
            "allow.everyone.if.no.acl.found": "true",
            "barnabas.metadata.flush": "false",
            "log.dirs": str(self.folder / str(node_id)),
            **{name.replace("_", "."): text for name, text in more.items()},
        })  # fmt: skip

    def start(self, node_id: int, **more: str) -> None:
        config, disk = self.config(node_id, **more), OsDisk()
        format_directory(
            disk, config.log_dirs[0], CLUSTER_ID, node_id, config, random.Random(node_id), standalone=False
        )
        node = Node(
            config, loop=self.loop, disk=disk, now_ms=lambda: int(time.time() * 1000), random=random.Random(node_id)
        )
        self.loop.run_until_complete(node.start())
        self.nodes.append(node)

    def ask(self, node_id: int, user: str, request: Any) -> Any:
        security = client_security({
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULE} username="{user}" password="{user}-secret";',
        })  # fmt: skip

        async def asked() -> Any:
            channel = Channel(self.loop, "127.0.0.1", self.ports[node_id], client_id="early", security=security)
            try:
                return await channel.request(request)
            finally:
                channel.close()

        return self.loop.run_until_complete(asked())

    def close(self) -> None:
        for node in self.nodes:
            self.loop.run_until_complete(node.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.fixture
def voters(tmp_path: Path) -> Iterator[Voters]:
    made = Voters(tmp_path)
    yield made
    made.close()


def vote() -> Any:
    """A pre-vote, which changes nothing."""
    kind = m.VoteRequest
    partition = kind.PartitionData(partition_index=0, replica_epoch=1, replica_id=2, pre_vote=True)
    topic = kind.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return kind(cluster_id=CLUSTER_ID, voter_id=1, topics=[topic])


@pytest.mark.slow
def test_controllers_serve_super_users_at_once_and_others_when_the_lists_are_loaded(voters: Voters) -> None:
    acls = m.DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, resource_name_filter=None,
        principal_filter=None, host_filter=None,
    )  # fmt: skip
    voters.start(1)
    for request in (acls, vote()):
        assert voters.ask(1, "node", request).error_code == 0, "a super user"
        # Even if everybody may do what no list mentions: nobody knows yet what the lists mention.
        assert voters.ask(1, "alice", request).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    # Two voters of three form a quorum, over connections with logins.
    voters.start(2)
    deadline = time.monotonic() + 60
    while voters.ask(1, "alice", acls).error_code:
        assert time.monotonic() < deadline
    assert voters.nodes[0].quorum.driver.node.leader_id in (1, 2)


def test_a_voter_that_is_no_super_user_does_not_start(voters: Voters) -> None:
    with pytest.raises(CannotStart, match=r"super\.users does not name User:node, as whom this controller speaks"):
        voters.start(1, super_users="User:admin")
