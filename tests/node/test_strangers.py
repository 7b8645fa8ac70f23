"""Requests of nodes, sent by a stranger to a running node over sockets: each is refused and audited, and the node keeps nothing of it.

- The table `api/authorization.tsv` says which requests those are, so a new API is sent here as soon as it has its row.
- The requests would do harm if they were allowed: they name a broker, a controller or a leader at an address where the test listens and
  counts connections. The last tests show that, as a super user.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from apache_kafka import free_port

from barnabas.api import APIS
from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.client.channel import Channel
from barnabas.config.config import BrokerConfig
from barnabas.log.disk import OsDisk
from barnabas.node.node import Node
from barnabas.protocol import messages as m
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.envelope import wrapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Struct
from barnabas.protocol.primitives import Uuid
from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.principal import Principal
from tests.api.authorization.rows import codes
from tests.api.authorization.test_checks_table import Line, lines
from tests.api.filled_requests import Values, filled

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
STRANGE = 77
"""The id of a broker, a controller or a leader that does not exist."""
NODES = [line for line in lines() if line.operation == "CLUSTER_ACTION"]
ADMINISTRATORS = [
    line
    for line in lines()
    if line.listener in "CA" and (line.resource, line.rule, line.operation) == ("CLUSTER", "need", "ALTER")
]
SAY_NOTHING = frozenset({"throttle_time_ms", "error_code", "error_message", "is_fenced"})


class Kept(NamedTuple):
    """What a node knows that a request could change."""

    brokers: dict[int, int]
    controllers: frozenset[int]
    epoch: int
    leader_id: int
    topics: frozenset[str]
    voters: tuple[int, ...]
    log_end: int
    fenced: frozenset[int]
    dials: int


class Running:
    """A node that is broker and controller, with an authorizer and listeners on sockets; its only super user is `node`.

    Args:
        has_login: a stranger logs in, as `stranger`; else it is ANONYMOUS.
    """

    def __init__(self, folder: Path, *, has_login: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.has_login = has_login
        self.stranger = "stranger" if has_login else "ANONYMOUS"
        self.controller_port = free_port()
        # A queue that nobody empties, of connections that the kernel has accepted.
        self.trap = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.trap.setblocking(False)
        self.dialled = 0
        protocol = "SASL_PLAINTEXT" if has_login else "PLAINTEXT"
        properties = {
            "listeners": f"CLIENTS://127.0.0.1:0,CONTROLLER://127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": f"CLIENTS:{protocol},CONTROLLER:{protocol}",
            "log.dirs": str(folder / "data"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:node",
            "barnabas.metadata.flush": "false",
        }
        if has_login:
            users = 'user_node="node-secret" user_stranger="stranger-secret"'
            properties |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "listener.name.clients.plain.sasl.jaas.config": f"{MODULE} {users};",
                "listener.name.controller.plain.sasl.jaas.config": (
                    f'{MODULE} username="node" password="node-secret" {users};'
                ),
            }
        self.node = Node(
            BrokerConfig.from_properties(properties, embedded=True),
            loop=self.loop,
            disk=OsDisk(),
            now_ms=lambda: int(time.time() * 1000),
            random=random.Random(1),
        )
        self.loop.run_until_complete(self.node.start())
        self._make_topic()

    def _make_topic(self) -> None:
        controller = self.node.quorum.controller
        topic = m.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        made = controller.handle(ApiKey.CREATE_TOPICS, 7, m.CreateTopicsRequest(topics=[topic]))
        assert self.loop.run_until_complete(made).topics[0].error_code == 0
        while "t" not in self.node.broker.image.topics.by_name or not self._leads():
            self.loop.run_until_complete(asyncio.sleep(0))

    def _leads(self) -> bool:
        try:
            return self.node.broker.replica_manager.partition("t", 0).is_leader
        except Exception:  # Not there yet.
            return False

    def close(self) -> None:
        self.loop.run_until_complete(self.node.stop(hands_over=False))
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.trap.close()

    def port(self, listener: str) -> int:
        return self.node.port if listener == "B" else self.controller_port

    def security(self, user: str) -> ClientSecurity | None:
        if not self.has_login:
            return None
        return client_security({
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{MODULE} username="{user}" password="{user}-secret";',
        })  # fmt: skip

    def ask(self, listener: str, request: Any, version: int, user: str | None = None) -> Any:
        """Send a request over a connection of its own, and close it."""

        async def asked() -> Any:
            port, security = self.port(listener), self.security(user or self.stranger)
            channel = Channel(self.loop, "127.0.0.1", port, client_id="strange", security=security)
            try:
                return await channel.request(request, version=version)
            finally:
                channel.close()

        return self.loop.run_until_complete(asked())

    def kept(self) -> Kept:
        quorum = self.node.quorum
        image, raft = quorum.loader.image, quorum.driver.node
        return Kept(
            {each.id: each.epoch for each in image.cluster.brokers.values()},
            frozenset(image.cluster.controllers),
            raft.epoch,
            raft.leader_id,
            frozenset(image.topics.by_name),
            tuple(raft.voters.ids()),
            self.node.broker.replica_manager.partition("t", 0).log.log_end_offset,
            frozenset(each.id for each in image.cluster.brokers.values() if each.fenced),
            self._count_dials(),
        )

    def _count_dials(self) -> int:
        while True:
            try:
                self.trap.accept()[0].close()
            except BlockingIOError:
                return self.dialled
            self.dialled += 1


@pytest.fixture(scope="module", params=[True, False], ids=["logged-in", "without-login"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(tmp_path_factory.mktemp("running"), has_login=request.param)
    yield made
    made.close()


# What would do harm


def of_quorum(running: Running) -> Values:
    """Values of requests about the quorum: a leader of a later epoch, at the address where the test listens."""
    raft = running.node.quorum.driver.node
    return {
        "cluster_id": running.node.cluster_id, "topic_name": "__cluster_metadata", "topic": "__cluster_metadata",
        "leader_id": STRANGE, "leader_epoch": raft.epoch + 5, "replica_epoch": raft.epoch + 5, "replica_id": STRANGE,
        "pre_vote": False, "last_offset": 1 << 40, "last_offset_epoch": raft.epoch + 5, "candidate_id": STRANGE,
        "voter_id": raft.key.id, "voter_directory_id": raft.key.directory_id, "preferred_successors": [STRANGE],
        "name": "CONTROLLER", "host": "127.0.0.1", "port": running.trap.getsockname()[1],
    }  # fmt: skip


def registration(running: Running) -> Any:
    kind = m.BrokerRegistrationRequest
    listener = kind.Listener(name="CLIENTS", host="127.0.0.1", port=running.trap.getsockname()[1])
    known = running.node.quorum.loader.image.features.all_finalized()
    return kind(
        broker_id=STRANGE,
        cluster_id=running.node.cluster_id,
        incarnation_id=Uuid(bytes([STRANGE] * 16)),
        listeners=[listener],
        features=[kind.Feature(name=name, min_supported_version=0, max_supported_version=99) for name in known],
        log_dirs=[Uuid(bytes([STRANGE] * 16))],
    )


def controller_registration(running: Running) -> Any:
    kind = m.ControllerRegistrationRequest
    listener = kind.Listener(name="CONTROLLER", host="127.0.0.1", port=running.trap.getsockname()[1])
    return kind(controller_id=STRANGE, incarnation_id=Uuid(bytes([STRANGE] * 16)), listeners=[listener])


def envelope(running: Running) -> Any:
    """In the name of a super user."""
    topic = m.CreateTopicsRequest.CreatableTopic(name="strange", num_partitions=1, replication_factor=1)
    inside = m.CreateTopicsRequest(topics=[topic])
    return wrapped(inside, 7, correlation_id=1, client_id="c", principal=Principal("User", "node"), host="127.0.0.1")


def in_sync(running: Running) -> Any:
    """Nobody is in sync any more."""
    kind, broker = m.AlterPartitionRequest, running.node.quorum.loader.image.cluster.brokers[1]
    topic = running.node.quorum.loader.image.topics.by_name["t"]
    state = topic.partitions[0]
    partition = kind.PartitionData(
        partition_index=0, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch
    )
    named = kind.TopicData(topic_id=topic.topic_id, partitions=[partition])
    return kind(broker_id=1, broker_epoch=broker.epoch, topics=[named])


def heartbeat(running: Running) -> Any:
    """In the name of the broker that lives: it would be fenced."""
    broker = running.node.quorum.loader.image.cluster.brokers[1]
    return m.BrokerHeartbeatRequest(broker_id=1, broker_epoch=broker.epoch, want_fence=True, want_shut_down=True)


HARM: dict[int, Callable[[Running], Any]] = {
    ApiKey.BROKER_REGISTRATION: registration,
    ApiKey.BROKER_HEARTBEAT: heartbeat,
    ApiKey.CONTROLLER_REGISTRATION: controller_registration,
    ApiKey.ENVELOPE: envelope,
    ApiKey.ALTER_PARTITION: in_sync,
}
QUORUM = (ApiKey.FETCH, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH_SNAPSHOT)


def harmful(running: Running, line: Line) -> tuple[Any, int]:
    """Return a request of a row, and its version."""
    version = (APIS if line.listener == "B" else CONTROLLER_APIS)[line.key].max_version
    if line.key in HARM:
        return HARM[line.key](running), version
    values: Values = {"replica_id": 2, "rack_id": "", "key_type": 2, "coordinator_keys": ["g:AAAAAAAAAAAAAAAAAAAAAQ:0"]}
    values["topic_id"] = bytes(running.node.quorum.loader.image.topics.by_name["t"].topic_id)
    if line.listener != "B" and line.key in (*QUORUM, ApiKey.UPDATE_RAFT_VOTER):
        values |= of_quorum(running)
    return filled(line.key, version, values), version


def told(answer: Any) -> set[Any]:
    """Return whatever an answer says beside its errors and what the request said."""
    found: set[Any] = set()
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if isinstance(value, Struct):
            found |= told(value)
        elif value not in (0, -1, b"", "", None, [], False, bytes(16)) and name not in SAY_NOTHING:
            found.add(name)
    return found


@pytest.mark.parametrize("line", NODES, ids=lambda line: f"{line.listener}-{line.api}")
def test_what_nodes_send_is_refused(running: Running, line: Line, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(5, "kafka.authorizer.logger")
    before = running.kept()
    request, version = harmful(running, line)
    answer = running.ask(line.listener, request, version)
    # A row `or` leaves the decision to the topic's.
    expected = ErrorCode[line.error] if line.error != "-" else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert set(codes(answer)) == {expected}, answer
    if line.listener != "B":
        assert told(answer) == set(), answer
    denied = (
        f"Principal = User:{running.stranger} is Denied operation = CLUSTER_ACTION from host = 127.0.0.1 on resource ="
    )
    audited = [record for record in caplog.records if record.message.startswith(denied)]
    assert f"Cluster:LITERAL:kafka-cluster for request = {line.api} with" in audited[0].message
    assert audited[0].levelno == (logging.INFO if line.error != "-" else 5)
    assert running.kept() == before


@pytest.mark.parametrize("line", ADMINISTRATORS, ids=lambda line: line.api)
def test_what_administrators_send_is_refused(running: Running, line: Line, caplog: pytest.LogCaptureFixture) -> None:
    """A controller refuses what comes to its own listener, and what a broker passes on."""
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    before = running.kept()
    for listener in ("C", "B") if line.listener == "A" and line.key in APIS else ("C",):
        caplog.clear()
        request, version = harmful(running, line._replace(listener=listener))
        answer = running.ask(listener, request, version)
        assert set(codes(answer)) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
        (audited,) = [record.message for record in caplog.records if record.name == "kafka.authorizer.logger"]
        assert f"User:{running.stranger} is Denied operation = {line.operation} " in audited
        assert f"for request = {line.api} with" in audited
    assert running.kept() == before


def test_no_address_was_dialled(running: Running) -> None:
    """After all the others, because a dial may come late."""
    assert running.kept().dials == 0


def test_the_table_has_them_all() -> None:
    """The requests that the issue names, so that an empty table does not pass."""
    named = {line.api for line in NODES if line.listener != "B"}
    assert named >= {
        "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "Fetch", "AlterPartition", "Envelope", "BrokerRegistration",
        "BrokerHeartbeat", "AllocateProducerIds", "ControllerRegistration", "AssignReplicasToDirs", "UpdateRaftVoter",
    }  # fmt: skip
    assert {line.api for line in NODES if line.listener == "B"} >= {"WriteTxnMarkers", "AddPartitionsToTxn", "Fetch"}
    assert {line.api for line in ADMINISTRATORS} >= {"UpdateFeatures", "AddRaftVoter", "RemoveRaftVoter"}


# The same requests, allowed


@pytest.fixture
def allowed(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path, has_login=True)
    yield made
    made.close()


def until(running: Running, condition: Callable[[], bool]) -> None:
    async def waiting() -> None:
        while not condition():
            await asyncio.sleep(0)

    running.loop.run_until_complete(asyncio.wait_for(waiting(), 30))


def test_a_super_user_registers_a_broker_and_the_controller_dials_it(allowed: Running) -> None:
    before = allowed.kept()
    answer = allowed.ask("C", registration(allowed), 4, "node")
    assert answer.error_code == 0
    beat = m.BrokerHeartbeatRequest(
        broker_id=STRANGE, broker_epoch=answer.broker_epoch, current_metadata_offset=1 << 40
    )
    assert allowed.ask("C", beat, 2, "node").error_code == 0
    assert allowed.kept().brokers.keys() == {*before.brokers, STRANGE}
    until(allowed, lambda: allowed.kept().dials > before.dials)


def test_a_super_user_moves_the_quorum(allowed: Running) -> None:
    before = allowed.kept()
    line = next(line for line in NODES if line.key == ApiKey.BEGIN_QUORUM_EPOCH)
    answer = allowed.ask("C", *harmful(allowed, line), "node")
    assert answer.error_code == 0
    until(allowed, lambda: allowed.kept().epoch > before.epoch)


def test_a_super_user_forwards_in_a_users_name(allowed: Running) -> None:
    assert allowed.ask("C", envelope(allowed), 0, "node").error_code == 0
    assert "strange" in allowed.kept().topics
