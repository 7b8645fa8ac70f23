"""The quorum of a node that is its only voter, without the node."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.clock import Clock
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.directory.storage import format_directory
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.quorum.metadata_quorum import MetadataQuorum
from barnabas.simulation.disk import SimDisk
from tests.metadata.controller_harness import CLUSTER_ID


@contextmanager
def opened_quorum(
    config: BrokerConfig, loop: asyncio.AbstractEventLoop, now_ms: int = 7_000
) -> Iterator[tuple[MetadataQuorum, ConfigResolver]]:
    """A quorum in memory; `start` elects this node."""
    disk, faults = SimDisk(), list[BaseException]()
    root, node_id = config.log_dirs[0], config.node_id
    is_static = bool(config.quorum_voters)
    meta = format_directory(disk, root, CLUSTER_ID, node_id, config, random.Random(1), standalone=not is_static)
    resolver = ConfigResolver(config_schema(), node_id, dict(config.properties), {})
    quorum = MetadataQuorum(
        config,
        meta,
        resolver,
        disk=disk,
        loop=loop,
        clock=Clock(lambda: now_ms, lambda: int(loop.time() * 1000)),
        random=random.Random(1),
        run_blocking=lambda work: loop.run_in_executor(None, work),
        on_fault=faults.append,
    )
    try:
        yield quorum, resolver
    finally:
        quorum.stop()
        quorum.close(clean=True)
    assert not faults
