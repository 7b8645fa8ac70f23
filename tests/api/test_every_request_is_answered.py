"""Every API of a whole node whose collaborators are late: the log that commits, the controller that answers.

Each request is sent while a write of every coordinator waits for its commit and the controller keeps its answers back. Then the
collaborators fail, with an error of the protocol or with a bug, or they never answer: the client has an answer in every case, or its
connection closes and the work is cancelled.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving.dispatch import Output
from barnabas.metrics import loop_lag
from barnabas.protocol.api_keys import ApiKey, api, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    SyncGroupRequest,
    UpdateFeaturesRequest,
)
from barnabas.records.builder import build_batch
from barnabas.turns import new_budget
from tests.api.filled_requests import Values, filled
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving

SETTINGS: dict[str, Any] = {
    # The broker's heartbeats are kept back as well, for as long as the longest request.
    "broker_session_timeout_ms": "3600000",
    "auto_create_topics_enable": "true",
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "barnabas_metrics_listen": "127.0.0.1:0",
}
PATIENCE = 20 * 60
"""Seconds of the node's time in which an answer must come when a collaborator never answers; above every timeout of a request."""

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
NEW_MEMBER: Values = {"group_id": "new", "member_id": MEMBER, "member_epoch": 0}
OF_SHARE_GROUP: Values = {"group_id": "s", "group_ids": ["s"], "member_id": MEMBER}
OF_EMPTY_GROUP: Values = {"group_id": "e"}
ABSENT: Values = {"name": "absent", "topic_id": bytes(16)}
SUBTOPOLOGY = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id="0", source_topics=["t"])
SPECIAL: dict[int, Values] = {
    ApiKey.PRODUCE: {"acks": -1},
    ApiKey.FETCH: {"rack_id": ""},
    ApiKey.METADATA: ABSENT,
    ApiKey.OFFSET_COMMIT: {"generation_id_or_member_epoch": 1},
    ApiKey.JOIN_GROUP: {"group_id": "new", "member_id": ""},
    ApiKey.SASL_HANDSHAKE: {"mechanism": "PLAIN"},
    ApiKey.CREATE_TOPICS: ABSENT,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {"mechanism": 1},
    ApiKey.CONSUMER_GROUP_HEARTBEAT: NEW_MEMBER,
    ApiKey.CONSUMER_GROUP_DESCRIBE: {"group_ids": ["c"]},
    ApiKey.SHARE_GROUP_HEARTBEAT: NEW_MEMBER,
    ApiKey.SHARE_GROUP_DESCRIBE: OF_SHARE_GROUP,
    ApiKey.SHARE_FETCH: {**OF_SHARE_GROUP, "forgotten_topics_data": [], "acknowledgement_batches": []},
    ApiKey.SHARE_ACKNOWLEDGE: OF_SHARE_GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: {
        **NEW_MEMBER,
        "topology": StreamsGroupHeartbeatRequest.Topology(epoch=1, subtopologies=[SUBTOPOLOGY]),
    },
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: OF_EMPTY_GROUP,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: OF_EMPTY_GROUP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: OF_EMPTY_GROUP,
}
"""What some APIs need in place of the common values to get as far as their collaborator."""

AT_ONCE = frozenset(
    {
        ApiKey.LIST_OFFSETS,
        ApiKey.FIND_COORDINATOR,
        ApiKey.SYNC_GROUP,  # of a stable group
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.DELETE_RECORDS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.CREATE_DELEGATION_TOKEN,  # on a connection in plain text, as the other three
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
        ApiKey.LIST_CONFIG_RESOURCES,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.SHARE_ACKNOWLEDGE,  # without a session
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,  # of a group without states
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    }
)
"""APIs that wait for no collaborator on a node that leads everything."""


class HeldService:
    """Stands for a service; what one of its methods would let a handler wait for is kept back."""

    def __init__(self, service: Any, held: Callable[[], asyncio.Future[Any]]) -> None:
        self._service, self._held_future = service, held

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._service, name)
        if not callable(found):
            return HeldService(found, self._held_future) if name == "marker_writer" else found

        def call(*arguments: Any, **options: Any) -> Any:
            result = found(*arguments, **options)
            if asyncio.iscoroutine(result):
                result.close()
            elif asyncio.isfuture(result):
                result.cancel()
            else:
                return result
            return self._held_future()

        return call


class Late:
    """A node whose collaborators keep their answers back while they are held."""

    def __init__(self, folder: Path, loop: QuietClock | None = None) -> None:
        self.node = Serving(folder, loop=loop or QuietClock(), **SETTINGS)
        self.held: list[asyncio.Future[Any]] = []
        self.values: Values = {}
        self._prepare()

    def _prepare(self) -> None:
        node = self.node
        node.create_topic("t", 1)
        update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=1, upgrade_type=1)
        node.ask(UpdateFeaturesRequest(feature_updates=[update]))
        for kind in (0, 1):
            node.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"]), 6)
        topic_id = bytes(node.server.services.image().topics.by_name["t"].topic_id)
        self.values["topic_id"] = topic_id
        key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
        node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
        begun = node.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000))
        assert begun.error_code == 0, begun
        self.values |= {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\0\0\0\0")
        joined = node.ask(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=1_800_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[protocol],
            ),
            3,
        )
        assert joined.error_code == 0, joined
        self.values["member_id"] = joined.member_id
        part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"part")
        synced = node.ask(
            SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id, assignments=[part]), 3
        )
        assert synced.error_code == 0, synced
        member: dict[str, Any] = {"member_id": MEMBER, "member_epoch": 0, "subscribed_topic_names": ["t"]}
        for heartbeat in (
            ConsumerGroupHeartbeatRequest(group_id="c", rebalance_timeout_ms=10_000, topic_partitions=[], **member),
            ShareGroupHeartbeatRequest(group_id="s", **member),
            ShareGroupHeartbeatRequest(group_id="e", **member),
            ShareGroupHeartbeatRequest(group_id="e", **{**member, "member_epoch": -1}),
        ):
            begun = node.ask(heartbeat)
            assert begun.error_code == 0, begun

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep back what coordinators append and what the controller answers; a write of each coordinator waits."""
        services = self.node.server.services
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(services.replica_manager, "append_internal", self._held)
            patch.setattr(services.controller, "handle", self._held)
            waiting = [self.dispatch(request, version)[1] for request, version in self._writes()]
            assert all(isinstance(result, asyncio.Future) for result in waiting)
            yield
            self.fail(lambda: KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.spin(1)  # The coordinators load their partitions again.

    @contextmanager
    def holding_services(self) -> Iterator[None]:
        """Keep back what handlers wait for: each answer of a coordinator's front, of the controller and of the share partitions."""
        services = self.node.server.services

        def held(service: Any) -> HeldService:
            return HeldService(service, self._held)

        share = SimpleNamespace(
            coordinator=held(services.share.coordinator),
            partitions=held(services.share.partitions),
            groups=held(services.share.groups),
        )
        with pytest.MonkeyPatch.context() as patch:
            for name in ("group_coordinator", "transaction_coordinator", "producer_ids", "controller"):
                patch.setattr(services, name, held(getattr(services, name)))
            patch.setattr(services, "share", share)
            yield
            self.fail(lambda: KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self.spin(1)

    def _held(self, *_: Any, **__: Any) -> asyncio.Future[Any]:
        self.held.append(self.node.loop.create_future())
        return self.held[-1]

    def _writes(self) -> Iterator[tuple[Any, int]]:
        Commit = OffsetCommitRequest.OffsetCommitRequestTopic
        Partition = OffsetCommitRequest.OffsetCommitRequestPartition
        partition = Partition(partition_index=0, committed_offset=1, committed_metadata="")
        yield OffsetCommitRequest(group_id="other", topics=[Commit(name="t", partitions=[partition])]), 8
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])]
        yield (
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="tx",
                v3_and_below_producer_id=self.values["producer_id"],
                v3_and_below_producer_epoch=self.values["producer_epoch"],
                v3_and_below_topics=topics,
            ),
            3,
        )
        state = InitializeShareGroupStateRequest.PartitionData(partition=0, state_epoch=1, start_offset=0)
        data = InitializeShareGroupStateRequest.InitializeStateData(
            topic_id=self.values["topic_id"], partitions=[state]
        )
        yield InitializeShareGroupStateRequest(group_id="other", topics=[data]), 0

    def dispatch(self, request: Any, version: int) -> tuple[Any, Output | asyncio.Future[Any] | None]:
        """Dispatch a request, the first in its turn of the loop."""
        new_budget()
        key = request.API_KEY
        header = struct.pack(">hhih", key, version, 42, 4) + b"test"
        if request_header_version(key, version) >= 2:
            header += b"\0"
        frame = memoryview(bytearray(header + request.encode(version)))

        async def dispatched() -> Any:
            return self.node.dispatcher.dispatch(self.node.connection, frame)

        return self.node.loop.run_until_complete(dispatched())  # type: ignore[no-any-return]

    def fail(self, failure: Callable[[], Exception]) -> None:
        """Let what is held back fail, and all that is asked for afterwards."""
        while waiting := [future for future in self.held if not future.done()]:
            for future in waiting:
                future.set_exception(failure())
            self.spin(0.001)

    def spin(self, seconds: float) -> None:
        self.node.loop.run_until_complete(asyncio.sleep(seconds))

    def answer(self, context: Any, result: asyncio.Future[Any], version: int) -> Any:
        output = result.result()
        assert output is not None
        whole = b"".join(part if isinstance(part, bytearray) else part.read() for part in output)
        return api(context.api_key).response_class.decode(
            whole[8 + response_header_version(context.api_key, version) :], version
        )

    def check_failing(self, context: Any, result: Any, version: int, failure: Callable[[], Exception]) -> None:
        if isinstance(result, asyncio.Future):
            self.fail(failure)
            self.spin(60)
            assert result.done(), "the client waits for ever"
            assert self.answer(context, result, version) is not None

    def check_silent(self, context: Any, result: Any, version: int) -> None:
        if not isinstance(result, asyncio.Future):
            return
        self.spin(PATIENCE)
        if result.done():
            assert self.answer(context, result, version) is not None
        else:  # The listener closes a connection that is idle for so long.
            result.cancel()
            self.spin(0.001)
            assert result.cancelled()


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Late]:
    with pytest.MonkeyPatch.context() as patch:
        # Nine of ten turns of the long waits were looks at the loop's lag.
        patch.setattr(loop_lag, "PERIOD_S", float(PATIENCE))
        made = Late(tmp_path_factory.mktemp("late"))
        yield made
        made.node.close()


def request_of(late: Late, key: int) -> tuple[Any, int]:
    """A request that gets as far as the API's collaborator, and its version."""
    version = 3 if key == ApiKey.JOIN_GROUP else APIS[key].max_version  # Later versions want a member id first.
    values = {**late.values, **SPECIAL.get(key, {})}
    if key == ApiKey.PRODUCE:
        producer = {name: values[name] for name in ("producer_id", "producer_epoch")}
        values["records"] = build_batch([(0, b"k", b"v", [])], base_sequence=0, transactional=True, **producer)
    return filled(key, version, values), version


FAILURES = pytest.mark.parametrize(
    "failure", [lambda: KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER), lambda: ValueError("a bug")], ids=["error", "bug"]
)
EVERY = pytest.mark.parametrize("key", list(APIS), ids=lambda key: APIS[key].module)


@EVERY
@FAILURES
def test_a_log_or_controller_that_fails_late(late: Late, key: int, failure: Callable[[], Exception]) -> None:
    request, version = request_of(late, key)
    with late.holding():
        context, result = late.dispatch(request, version)
        assert isinstance(result, asyncio.Future) == (key not in AT_ONCE)
        late.check_failing(context, result, version, failure)


@EVERY
@FAILURES
def test_a_service_that_fails_late(late: Late, key: int, failure: Callable[[], Exception]) -> None:
    request, version = request_of(late, key)
    with late.holding_services():
        context, result = late.dispatch(request, version)
        late.check_failing(context, result, version, failure)


@EVERY
def test_a_log_or_controller_that_never_answers(late: Late, key: int) -> None:
    request, version = request_of(late, key)
    with late.holding():
        late.check_silent(*late.dispatch(request, version), version)


@EVERY
def test_a_service_that_never_answers(late: Late, key: int) -> None:
    request, version = request_of(late, key)
    with late.holding_services():
        late.check_silent(*late.dispatch(request, version), version)
