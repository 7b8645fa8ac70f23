"""A node's part of the quorum, as the server puts it together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from barnabas.clock import Clock
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.directory.storage import format_directory
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quorum.metadata_quorum import MetadataQuorum
from barnabas.simulation.disk import SimDisk
from tests.api.quiet_clock import QuietClock
from tests.metadata.controller_harness import CLUSTER_ID

PROPERTIES = {
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "/data",
    "metadata.log.max.record.bytes.between.snapshots": "200",
    "auto.leader.rebalance.enable": "false",
}


@pytest.fixture
def loop() -> Iterator[QuietClock]:
    made = QuietClock()
    yield made
    made.close()


def test_it_leads_publishes_writes_snapshots_and_stops(loop: QuietClock) -> None:
    disk, config, faults = SimDisk(), BrokerConfig.from_properties(PROPERTIES), list[BaseException]()
    meta = format_directory(disk, "/data", CLUSTER_ID, 1, config, random.Random(1))
    clock = Clock(lambda: 7_000, lambda: int(loop.time() * 1000))

    def opened() -> MetadataQuorum:
        quorum = MetadataQuorum(
            config,
            meta,
            ConfigResolver(config_schema(), 1, dict(config.properties), {}),
            disk=disk,
            loop=loop,
            clock=clock,
            random=random.Random(1),
            run_blocking=lambda work: loop.run_in_executor(None, work),
            on_fault=faults.append,
        )
        quorum.start()
        return quorum

    async def story() -> None:
        quorum = opened()
        images: list[MetadataImage] = []
        await quorum.loader.add_late_publisher(lambda delta, image: images.append(image))
        request = messages.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)
        future = quorum.controller.handle(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
        with pytest.raises(KafkaError) as refused:
            await future
        assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
        assert images[-1].features.metadata_version is not None
        assert images[-1].features.kraft_version == 1
        assert quorum.controller.settings.auto_leader_rebalance_enable is False
        while len([name for name in disk.listdir("/data/__cluster_metadata-0") if name.endswith(".checkpoint")]) < 2:
            await asyncio.sleep(0)
        assert repr(quorum).startswith("<MetadataQuorum <RaftNode id=1 Leader epoch=1")
        quorum.stop()
        quorum.close(clean=True)
        assert not quorum.controller.is_active
        again = opened()
        await asyncio.sleep(0.001)
        assert again.driver.node.epoch == 2
        assert again.loader.image.features == images[-1].features

    loop.run_until_complete(story())
    assert faults == []
