"""An observer made of our parts follows the metadata log of a real Apache Kafka controller, byte for byte."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.client.admin import Admin, NewTopic
from barnabas.clock import Clock
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.image import MetadataImage
from barnabas.quorum.metadata_log import DIRECTORY
from barnabas.quorum.metadata_quorum import MetadataQuorum
from tests.conform.brokers import KafkaProcess
from tests.conform.same_directory.nodes import Kafka

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

OBSERVER = 7
SECONDS = 60


class Observer:
    """Node 7, a broker that knows the controller's address and nothing else."""

    def __init__(self, folder: Path, controller: dict[str, str], kafka: KafkaProcess) -> None:
        loop = asyncio.get_running_loop()
        meta = MetaProperties.decode((kafka.data_dir / "meta.properties").read_bytes())
        config = BrokerConfig.from_properties(
            {
                "process.roles": "broker",
                "node.id": str(OBSERVER),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": str(folder),
                **controller,
            }
        )
        self.faults: list[BaseException] = []
        self.quorum = MetadataQuorum(
            config,
            MetaProperties(meta.cluster_id, OBSERVER, "AAAAAAAAAAAAAAAAAAAABw"),
            ConfigResolver(config_schema(), OBSERVER, dict(config.properties), {}),
            disk=OsDisk(),
            loop=loop,
            clock=Clock(lambda: int(time.time() * 1000), lambda: int(loop.time() * 1000)),
            random=random.Random(OBSERVER),
            run_blocking=lambda work: loop.run_in_executor(None, work),
            on_fault=self.faults.append,
        )
        self.folder = folder
        self.quorum.start()

    @property
    def image(self) -> MetadataImage:
        return self.quorum.loader.image

    def close(self) -> None:
        self.quorum.stop()
        self.quorum.close(clean=True)


def segments(folder: Path) -> bytes:
    """The records of a metadata log, as they are on the disk."""
    return b"".join(path.read_bytes() for path in sorted((folder / DIRECTORY).glob("*.log")))


async def until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} s"
        await asyncio.sleep(0.02)


async def agreed(observer: Observer, kafka: KafkaProcess) -> None:
    """Wait until the observer has the bytes that Kafka has now; Kafka goes on to write one NoOpRecord after the other."""
    theirs = await asyncio.to_thread(segments, kafka.data_dir)
    await until(lambda: len(segments(observer.folder)) >= len(theirs))
    assert segments(observer.folder)[: len(theirs)] == theirs
    assert observer.faults == []


def create(kafka: KafkaProcess, *names: str) -> None:
    with Admin(kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 3) for name in names])


def observers(kafka: KafkaProcess) -> list[int]:
    with Admin(kafka.bootstrap_servers) as admin:
        return [each.id for each in admin.describe_quorum().replicas if not each.is_voter]


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_an_observer_has_the_log_that_kafka_has(kind: str, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka") if kind == "dynamic" else KafkaProcess(tmp_path / "kafka")
    address = f"127.0.0.1:{kafka.controller_port}"
    controller = (
        {"controller.quorum.bootstrap.servers": address}
        if kind == "dynamic"
        else {"controller.quorum.voters": f"1@{address}"}
    )

    async def story() -> None:
        await asyncio.to_thread(create, kafka, "before")
        observer = Observer(tmp_path / "observer", controller, kafka)
        await until(lambda: "before" in observer.image.topics.by_name)
        await agreed(observer, kafka)
        await asyncio.to_thread(create, kafka, "one", "two")
        await until(lambda: {"one", "two"} <= set(observer.image.topics.by_name))
        await agreed(observer, kafka)
        assert observer.quorum.driver.node.voters.ids() == (1,)
        assert observer.image.features.kraft_version == (1 if kind == "dynamic" else 0)
        endpoint = observer.quorum.leader_endpoint()
        assert endpoint is not None
        assert f"{endpoint.host}:{endpoint.port}" == address
        assert OBSERVER in await asyncio.to_thread(observers, kafka)

        observer.close()
        await asyncio.to_thread(kafka.kill)
        await asyncio.to_thread(kafka.start)
        again = Observer(tmp_path / "observer", controller, kafka)
        await asyncio.to_thread(create, kafka, "after")
        await until(lambda: "after" in again.image.topics.by_name)
        await agreed(again, kafka)
        again.close()

    with kafka:
        asyncio.run(story())


@pytest.mark.long
def test_an_observer_takes_the_snapshot_of_a_log_that_kafka_has_trimmed(tmp_path: Path) -> None:
    """Kafka trims its log once a minute."""
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "6000",
        "internal.metadata.log.segment.bytes": "4000",
    }
    kafka = KafkaProcess(tmp_path / "kafka", settings=settings)
    controller = {"controller.quorum.voters": f"1@127.0.0.1:{kafka.controller_port}"}

    async def story() -> None:
        for number in range(30):
            await asyncio.to_thread(create, kafka, f"topic{number}")
        first = kafka.data_dir / DIRECTORY / f"{0:020d}.log"
        await until(lambda: not first.exists(), 120)
        observer = Observer(tmp_path / "observer", controller, kafka)
        await until(lambda: len([name for name in observer.image.topics.by_name if name.startswith("topic")]) == 30)
        assert observer.quorum.driver.log.start_offset > 0
        snapshot = observer.quorum.driver.log.earliest_snapshot()
        assert snapshot is not None
        await asyncio.to_thread(create, kafka, "after")
        await until(lambda: "after" in observer.image.topics.by_name)
        assert segments(observer.folder)[:200] in segments(kafka.data_dir)
        assert observer.faults == []
        observer.close()

    with kafka:
        asyncio.run(story())
