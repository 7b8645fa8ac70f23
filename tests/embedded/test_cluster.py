"""A cluster of processes, and each of its faults as a client of another project sees it."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

import aiokafka
import kafka
import pytest
from confluent_kafka import Producer

import barnabas
from barnabas.client.admin import Admin
from tests.embedded.orders_topic import PATIENCE_SECONDS, send, values

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


def producer_of(cluster: barnabas.Cluster, **settings: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "linger.ms": 0,
            "log_level": 0,
            **settings,
        }
    )


def follower_without_the_controller(cluster: barnabas.Cluster) -> tuple[int, int]:
    """Return the leader of orders-0 and a follower, neither of them the controller."""
    controller = cluster.controller()
    leader = next(node for node in cluster.nodes if node != controller)
    if cluster.leader("orders") != leader:
        cluster.move_leader("orders", to=leader)
    return leader, next(node for node in cluster.nodes if node not in (controller, leader))


def await_not_in_sync(cluster: barnabas.Cluster, node: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while node in cluster.in_sync("orders"):
        assert time.monotonic() < deadline, cluster.in_sync("orders")


@pytest.mark.long
def test_a_leader_is_killed_and_returns(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    assert cluster.running_nodes == cluster.nodes == (1, 2, 3)
    cluster.create_topic("orders")
    assert sorted(cluster.in_sync("orders")) == [1, 2, 3]
    producer = producer_of(cluster)
    assert send(producer, "one") == 0
    killed = cluster.leader("orders")
    cluster.kill(killed)
    assert killed not in cluster.running_nodes
    assert send(producer, "two") == 1
    assert cluster.leader("orders") != killed
    with pytest.raises(RuntimeError, match=rf"^node {killed} is down: call restart\({killed}\) first$"):
        cluster.wait_until_in_sync()
    address = cluster.address(killed)
    cluster.restart(killed)
    cluster.wait_until_in_sync()
    assert sorted(cluster.in_sync("orders")) == [1, 2, 3]
    assert cluster.address(killed) == address
    assert values(cluster.bootstrap_servers) == [b"one", b"two"]


def test_a_leader_moves(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    cluster.create_topic("orders")
    producer = producer_of(cluster)
    assert send(producer) == 0
    before = cluster.leader("orders")
    moved = cluster.move_leader("orders")
    assert moved == cluster.leader("orders") != before
    assert cluster.move_leader("orders", to=before) == before
    assert cluster.move_leader("orders", to=before) == before
    assert send(producer) == 1
    with pytest.raises(ValueError, match=r"^node 9 has no replica of orders-0: it is on nodes \["):
        cluster.move_leader("orders", to=9)
    cluster.create_topic("alone", replicas=1)
    with pytest.raises(ValueError, match="no other replica of alone-0 is in sync"):
        cluster.move_leader("alone")


def test_the_next_two_requests_fail_wherever_they_arrive(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    fault = cluster.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE", times=2)
    codes = []
    for node in (1, 2, 3, 1):
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.address(node))
        try:
            admin.list_groups(broker_ids=[node])
            codes.append(0)
        except kafka.errors.KafkaError as error:
            codes.append(error.errno)
        admin.close()
    assert codes.count(0) == 2
    assert fault.hits == 2
    at_two = cluster.fail("ListGroups", "COORDINATOR_NOT_AVAILABLE", node=2)
    for node in (1, 3):
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.address(node))
        admin.list_groups(broker_ids=[node])
        admin.close()
    assert at_two.hits == 0


@pytest.mark.long
def test_a_lost_answer_of_three_replicas(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    cluster.create_topic("orders")
    producer = producer_of(cluster)
    fault = cluster.drop_response_after_write()
    assert send(producer, "one") == 0
    assert fault.hits == 1
    assert send(producer, "two") == 1
    assert values(cluster.bootstrap_servers) == [b"one", b"two"]


@pytest.mark.long
def test_a_slow_node_and_a_slow_network(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    cluster.create_topic("orders", replicas=2)
    leader, follower = cluster.in_sync("orders")
    producer = producer_of(cluster)
    send(producer)

    def seconds() -> float:
        began = time.monotonic()
        assert isinstance(send(producer), int)
        return time.monotonic() - began

    cluster.delay((leader, follower), 0.2)
    # The follower's next request begins its way after the record was written, at the earliest.
    assert seconds() >= 0.2
    cluster.heal()
    cluster.delay(leader, 0.2)
    assert seconds() >= 0.4
    cluster.delay(leader, 0)
    send(producer)
    assert [cluster.leader("orders")] == [leader]


def test_a_reset_leaves_nothing(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    before = (cluster.bootstrap_servers, cluster.cluster_id)
    cluster.create_topic("orders", config={"retention.ms": 60000})
    producer = producer_of(cluster, **{"transactional.id": "till"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce("orders", b"one")
    producer.flush(PATIENCE_SECONDS)
    cluster.fail("Metadata", "UNKNOWN_SERVER_ERROR", times=None)
    cluster.cut(1, 2)
    cluster.pause(3)
    assert cluster.running_nodes == (1, 2)
    # It would ask for its topic again, and so create it, at any time after the reset.
    del producer
    cluster.reset()
    assert cluster.running_nodes == (1, 2, 3)
    assert (cluster.bootstrap_servers, cluster.cluster_id) == before
    with Admin(cluster.bootstrap_servers) as admin:
        assert admin.list_topics(internal=True) == []
        assert admin.list_groups() == []
        assert admin.list_transactions() == []
    cluster.create_topic("orders")
    assert send(producer_of(cluster)) == 0


def test_mistakes_are_one_sentence(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    with pytest.raises(ValueError, match=r"^there is no node 4: the nodes are 1 to 3$"):
        cluster.kill(4)
    with pytest.raises(ValueError, match=r"^there is no node 7: the nodes are 1 to 3$"):
        cluster.partition(1, {2, 7})
    for cut in (
        lambda: cluster.cut(1, 1),
        lambda: cluster.partition({1}, {1, 2}),
        lambda: cluster.partition({2, 1}, cluster.nodes),
        lambda: cluster.delay((1, 1), 0.1),
    ):
        with pytest.raises(ValueError, match=r"^node 1 is on both sides: a node always reaches itself$"):
            cut()
    with pytest.raises(ValueError, match=r"^one side has no node: name nodes on both sides$"):
        cluster.partition(1, set())
    with pytest.raises(barnabas.KafkaError, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("orders", replicas=4)
    with pytest.raises(barnabas.CannotStart, match=r"^this cluster already runs on "):
        cluster.start()
    with pytest.raises(TimeoutError, match=r"^after 0 s nothing-0 has no leader that runs$"):
        cluster.leader("nothing", timeout=0)


def test_a_wait_in_vain_names_the_active_faults(
    barnabas_cluster: barnabas.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = barnabas_cluster
    cluster.partition(1, {2, 3})
    faults = "(nodes 1 and 2 are cut from each other, nodes 1 and 3 are cut from each other: heal() ends the faults)"
    with pytest.raises(TimeoutError) as waited:
        cluster.leader("nothing", timeout=0)
    assert str(waited.value) == f"after 0 s nothing-0 has no leader that runs {faults}"
    monkeypatch.setattr("barnabas.embedded.cluster._START_S", 0.5)
    with pytest.raises(
        barnabas.CannotStart, match=rf"^node 1 does not start: .*{re.escape(faults)}; its log ends with\n"
    ):
        cluster.restart(1)
    cluster.heal()
    monkeypatch.undo()
    cluster.restart(1)


def test_a_cluster_that_does_not_run() -> None:
    cluster = barnabas.Cluster()
    assert repr(cluster) == "<barnabas.Cluster stopped>"
    cluster.stop()
    with pytest.raises(RuntimeError, match="this cluster does not run: call start"):
        cluster.bootstrap_servers  # noqa: B018


@pytest.mark.long
def test_a_leader_stands_still(barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    cluster.create_topic("orders")
    producer = producer_of(cluster, **{"request.timeout.ms": 1000, "socket.timeout.ms": 1000})
    assert send(producer, "one") == 0
    paused = cluster.leader("orders")
    cluster.pause(paused)
    assert cluster.leader("orders") != paused
    assert send(producer, "two") == 1
    cluster.resume(paused)
    cluster.wait_until_in_sync()
    assert values(cluster.bootstrap_servers) == [b"one", b"two"]


@pytest.mark.long
def test_a_leader_is_cut_off_and_acknowledges_nothing(barnabas_cluster: barnabas.Cluster) -> None:
    """Clients still reach it: what it takes must not be acknowledged, and is gone when the cut is healed."""
    cluster = barnabas_cluster
    cluster.create_topic("orders")
    leader = cluster.leader("orders")
    others = {node for node in cluster.nodes if node != leader}

    async def scene() -> None:
        stale = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.address(leader), acks="all", request_timeout_ms=PATIENCE_SECONDS * 1000
        )
        async with stale:
            await stale.send_and_wait("orders", b"one")
            await asyncio.to_thread(cluster.partition, leader, others)
            under_way = await stale.send("orders", b"lost or written later")
            while await asyncio.to_thread(cluster.leader, "orders") == leader:
                assert not under_way.done()
            assert not under_way.done()
            new = producer_of(cluster, **{"bootstrap.servers": cluster.address(min(others))})
            assert await asyncio.to_thread(send, new, "two") == 1
            await asyncio.to_thread(cluster.heal)
            await asyncio.to_thread(cluster.wait_until_in_sync)
            # The producer hears of the new leader, and writes the record there.
            assert (await under_way).offset == 2

    asyncio.run(scene())
    assert values(cluster.bootstrap_servers) == [b"one", b"two", b"lost or written later"]


@pytest.mark.long
@pytest.mark.parametrize("is_response_cut", [False, True])
def test_one_way_is_cut(is_response_cut: bool, barnabas_cluster: barnabas.Cluster) -> None:
    cluster = barnabas_cluster
    cluster.create_topic("orders")
    leader, follower = follower_without_the_controller(cluster)
    producer = producer_of(cluster)
    assert send(producer) == 0
    if is_response_cut:
        cluster.cut(leader, follower)
    else:
        cluster.cut(follower, leader)
    # Two copies are left, as acks=all demands; the leader waits for the third one until its lag is too long.
    assert send(producer) == 1
    await_not_in_sync(cluster, follower)
    assert follower in cluster.running_nodes
    cluster.heal()
    cluster.wait_until_in_sync()


@pytest.mark.long
def test_a_node_is_stopped_in_order_and_the_data_is_kept(tmp_path: Path) -> None:
    with barnabas.Cluster(data_dir=tmp_path / "cluster", config={"num.partitions": 2}) as cluster:
        cluster.create_topic("orders")
        producer = producer_of(cluster)
        assert send(producer, "one") == 0
        leader = cluster.leader("orders")
        cluster.stop(leader)
        assert send(producer, "two") == 1
        cluster_id = cluster.cluster_id
        ports = cluster.bootstrap_servers
    assert not cluster.is_running
    with cluster:
        assert (cluster.cluster_id, cluster.bootstrap_servers) == (cluster_id, ports)
        assert values(cluster.bootstrap_servers) == [b"one", b"two"]
        with pytest.raises(barnabas.CannotStart, match="in use by another cluster"):
            barnabas.Cluster(data_dir=tmp_path / "cluster").start()


@pytest.mark.long
def test_a_node_that_cannot_start_shows_its_log() -> None:
    with barnabas.Cluster() as cluster:
        cluster.kill(2)
        (Path(cluster.data_dir) / "node-2" / "data" / "meta.properties").write_text(
            "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=2\n"
        )
        with pytest.raises(barnabas.CannotStart) as caught:
            cluster.restart(2)
        text = str(caught.value)
        assert text.startswith("node 2 does not start: ")
        assert "its log ends with\n    " in text
        assert "AAAAAAAAAAAAAAAAAAAAAA" in text


@pytest.mark.long
def test_a_cluster_in_asyncio_leaves_nothing_behind() -> None:
    async def scene() -> str:
        async with barnabas.Cluster(brokers=1) as cluster:
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                assert (await producer.send_and_wait("orders", b"one")).offset == 0
            return cluster.data_dir

    assert not os.path.exists(asyncio.run(scene()))
