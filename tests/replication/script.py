"""Golden scripts of replication (see `tests.golden`): brokers with simulated disks, and a controller, in virtual time.

    > produce 1 a                                               a client's request to broker 1
    2 > 1 Fetch epoch=0 from=0@-1                               a request as it arrives: FROM is OFFSET@EPOCH of the last record
    1 > 2 0@0:a hw=0                                            an answer as it arrives: OFFSET@EPOCH of a batch, and its values
    1 > controller isr=1,2 epoch=0                              AlterPartition, with the partition's epoch
    controller > 1 leader=1/0 isr=1,2 epoch=1                   its answer
    1: produced NONE                                            the answer to the client
      orders leader=1/0 isr=1,2 epoch=1                         the partition at the controller, if it has changed
      1 leader epoch=0 log=[0@0] end=1 hw=1                     a replica, if it has changed; log= has the first offset of each epoch

A Fetch is written if it asks for the partition, and its answer if it has news of it. A command ends when nothing has come for a while.

Commands: see the methods `do_...`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.golden import Script, milliseconds, options
from tests.replication.brokers import Broker, Cluster
from tests.replication.following import batches_of

QUIET_MS = 20


class WrittenDown(Cluster):
    """A cluster that lists what its brokers and its controller say to each other."""

    def __init__(self, brokers: int, **config: Any) -> None:
        self.lines: list[str] = []
        super().__init__(brokers, **config)

    def asked(self, follower: int, leader: int, request: Any) -> None:
        super().asked(follower, leader, request)
        for asked in (each for topic in getattr(request, "topics", ()) for each in topic.partitions):
            if isinstance(request, FetchRequest):
                where = f"from={asked.fetch_offset}@{asked.last_fetched_epoch}"
                self.lines.append(f"{follower} > {leader} Fetch epoch={asked.current_leader_epoch} {where}")

    def answered(self, leader: int, follower: int, response: FetchResponse) -> None:
        for data in (each for topic in response.responses for each in topic.partitions):
            self.lines.append(f"{leader} > {follower} {_fetched(data)}")

    def handle(self, api_key: int, version: int, request: Any) -> asyncio.Future[Any]:
        (proposal,) = [each for topic in request.topics for each in topic.partitions]
        sender = request.broker_id
        isr = ",".join(str(each.broker_id) for each in proposal.new_isr_with_epochs)
        self.lines.append(f"{sender} > controller isr={isr} epoch={proposal.partition_epoch}")

        def done(future: asyncio.Future[Any]) -> None:
            error = future.exception()
            if isinstance(error, ConnectionLost):
                return
            (answer,) = [each for topic in future.result().topics for each in topic.partitions]
            words = ErrorCode(answer.error_code).name
            if not answer.error_code:
                isr = ",".join(map(str, answer.isr))
                words = f"leader={answer.leader_id}/{answer.leader_epoch} isr={isr} epoch={answer.partition_epoch}"
            self.lines.append(f"controller > {sender} {words}")

        answered = super().handle(api_key, version, request)
        answered.add_done_callback(done)
        return answered


class ReplicationScript(Script):
    def __init__(self) -> None:
        super().__init__()
        self.cluster: WrittenDown

    def close(self) -> None:
        self.cluster.close()

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_brokers(self, count: str, *words: str) -> None:
        """brokers COUNT [NAME=NUMBER ...]: and a partition with a replica on each, which broker 1 leads; with settings of its topic"""
        config = {name.replace(".", "_"): int(value) for name, value in options(words).items()}
        self.cluster = WrittenDown(int(count), **config)
        self.cluster.create_topic()
        self.cluster.advance(1000)
        self.cluster.lines.clear()

    def do_produce(self, broker: str, *words: str) -> None:
        """produce BROKER VALUE ... [acks=N] [timeout=T]: one batch"""
        given = options(words)
        values = [word.encode() for word in words if "=" not in word]
        timeout_ms = milliseconds(given.get("timeout", "10m"))
        produced = self._broker(broker).produce(*values, acks=int(given.get("acks", -1)), timeout_ms=timeout_ms)

        def done(_: object) -> None:
            self._write_down()
            self.trace.append(f"{broker}: produced {b' '.join(values).decode()} {produced.outcome}")

        if produced.future.done():
            done(None)
        else:
            produced.future.add_done_callback(done)

    def do_consume(self, broker: str, offset: str) -> None:
        """consume BROKER OFFSET: Fetch of a consumer, without a wait"""
        data = self._broker(broker).consume(int(offset))
        self.trace.append(f"{broker}: consumed {_fetched(data)}")

    def do_isolate(self, broker: str) -> None:
        """isolate BROKER: it reaches the controller, but no other broker"""
        self.cluster.isolate(int(broker))

    def do_heal(self) -> None:
        """heal: all brokers reach each other again"""
        self.cluster.heal()

    def do_fence(self, broker: str) -> None:
        """fence BROKER: at the controller, as when its session ends"""
        self.cluster.fence(int(broker))

    def do_unfence(self, broker: str) -> None:
        """unfence BROKER: it has sent a heartbeat"""
        self.cluster.unfence(int(broker))

    def do_kill(self, broker: str) -> None:
        """kill BROKER: it ends without a word, and the controller fences it; what was not flushed is lost"""
        self._broker(broker).kill()
        self.cluster.fence(int(broker))

    def do_start(self, broker: str) -> None:
        """start BROKER: on the disk that it left; the controller lets it serve after half a second"""
        self._broker(broker).start()

    def do_lose_answer(self) -> None:
        """lose-answer: of the next AlterPartition, which is carried out"""
        self.cluster.lost_answers = 1

    def do_behind(self, *brokers: str) -> None:
        """behind [BROKER ...]: these brokers get no metadata; all others get what they have missed"""
        self.cluster.is_behind = {int(broker) for broker in brokers}
        self.cluster.publish()

    def do_prefer(self) -> None:
        """prefer: the first replica is elected, if it is in sync (ElectLeaders)"""
        asked = messages.ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0])
        request = messages.ElectLeadersRequest(election_type=0, topic_partitions=[asked], timeout_ms=1000)
        self.cluster.harness.send(ApiKey.ELECT_LEADERS, request)

    def do_advance(self, time: str) -> None:
        """advance TIME: let time pass"""
        self.cluster.advance(milliseconds(time))

    # -- the trace ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        quiet_ms = 0
        while quiet_ms < QUIET_MS:
            self._write_down()
            self.cluster.advance(1)
            quiet_ms = 0 if self.cluster.lines else quiet_ms + 1

    def states(self) -> dict[str, str]:
        now = self.cluster.now()
        partition = f"orders leader={now.leader}/{now.leader_epoch} isr={','.join(map(str, now.isr))}"
        if now.elr:
            partition += f" elr={','.join(map(str, now.elr))}"
        states = {"orders": f"{partition} epoch={now.partition_epoch}"}
        brokers = [broker for broker in self.cluster.brokers.values() if broker.is_up]
        return states | {f"broker {broker.node_id}": _replica(broker) for broker in brokers}

    def _write_down(self) -> None:
        self.trace += self.cluster.lines
        self.cluster.lines.clear()

    def _broker(self, broker: str) -> Broker:
        return self.cluster[int(broker)]


def _fetched(data: Any) -> str:
    words = [] if not data.error_code else [ErrorCode(data.error_code).name]
    if data.diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
        words.append(f"diverging={data.diverging_epoch.end_offset}@{data.diverging_epoch.epoch}")
    records = memoryview(bytes(data.records or b""))
    for position, header in iter_batches(records):
        batch = records[position : position + header.size]
        values = ",".join(bytes(record.value or b"").decode() for record in iter_records(batch))
        words.append(f"{header.base_offset}@{header.partition_leader_epoch}:{values}")
    return " ".join([*words, f"hw={data.high_watermark}"])


def _replica(broker: Broker) -> str:
    partition = broker.partition()
    role = "leader" if partition.is_leader else "follower"
    epochs: dict[int, int] = {}
    for data in batches_of(broker.log()).values():
        for _, header in iter_batches(memoryview(data)):
            epochs.setdefault(header.partition_leader_epoch, header.base_offset)
    held = " ".join(f"{offset}@{epoch}" for epoch, offset in epochs.items())
    ends = f"end={broker.log().log_end_offset} hw={broker.log().high_watermark}"
    return f"{broker.node_id} {role} epoch={partition.leader_epoch} log=[{held}] {ends}"
