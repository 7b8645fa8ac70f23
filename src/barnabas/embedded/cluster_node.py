"""The program of one node of a `barnabas.Cluster`: `barnabas start`, and a channel over which the cluster orders faults.

    Cluster ◄── a pair of sockets, standard input of this process ──► node

    first line    {"settings", "peers", "plan", "temporary"}      ──►   {"address", "cluster_id"}, when the node serves
    then          commands (`cluster_control`)                    ──►   one line for each, in order

- The node inherits the pair of sockets: no other process can reach it over the network or by a path. `barnabas start` has no such channel.
- When the cluster closes the sockets, the whole cluster ends. The node stops and hands nothing over, because no other node continues.
- If the cluster's folder is a temporary one, closed sockets mean that the cluster's process was killed: the node deletes the folder and
  ends at once.
- The node does the same when its parent process has ended, because a fork of the parent may keep the sockets open.
- Settings come from the node's file and from the first line, as `--set` would name them. The environment is not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.embedded.cluster_control import ClusterControl
from barnabas.embedded.fault_plan import FaultPlan
from barnabas.embedded.faulty_disk import FaultyDisk
from barnabas.embedded.link_faults import FaultyLoop, LinkFaults
from barnabas.embedded.moved_clock import MovedClock
from barnabas.net.log_lines import LineFormatter
from barnabas.node.node import Node
from barnabas.process.arguments import print_error
from barnabas.process.commands import epoch_ms
from barnabas.process.stop_signals import StopSignals
from barnabas.words.kafka_words import in_plain_words

__all__ = ["main"]

logger = logging.getLogger(__name__)

_LINE_BYTES_MAX = 64 * 1024 * 1024
_PARENT_S = 0.5
_DELETIONS = 3


def main(properties: str) -> int:
    """Run a node until it is stopped, and return the exit code.

    Args:
        properties: the path of its `server.properties`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level="INFO", handlers=[handler])
    loop = FaultyLoop()
    try:
        return loop.run_until_complete(_run(properties, loop))
    except (ConfigError, CannotStart) as mistake:
        print_error(in_plain_words(str(mistake)).message)
        return 1
    finally:
        loop.close()


async def _run(properties: str, loop: FaultyLoop) -> int:
    parent = os.getppid()
    channel = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    reader, writer = await asyncio.open_connection(sock=channel, limit=_LINE_BYTES_MAX)
    first = await _receive(reader)
    if first is None:
        return 0
    config = BrokerConfig.from_properties({**read_properties(properties), **first["settings"]})
    peers = {(host, port): node_id for host, port, node_id in first["peers"]}
    plan = FaultPlan.from_json(config.node_id, first["plan"])
    links = loop.faults = LinkFaults(config.node_id, peers, loop)
    links.apply(plan)
    disk, clock = FaultyDisk(), MovedClock(epoch_ms)
    disk.apply(plan.disks[config.node_id])
    clock.apply(plan.clocks[config.node_id])
    signals = StopSignals(loop)
    node = Node(config, loop=loop, disk=disk, now_ms=clock.now_ms, random=random.Random())
    orphaned = loop.create_task(_orphaned(parent))
    tasks = [orphaned]
    try:
        start = loop.create_task(node.start())
        await asyncio.wait((start, signals.asked, orphaned), return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            start.cancel()
            await asyncio.wait((start,))
            return 0
        start.result()
        control = ClusterControl(node, links, disk, clock)
        control.apply(plan)
        _send(writer, {"address": node.addresses[0], "cluster_id": node.cluster_id})
        tasks += (loop.create_task(_serve(control, reader, writer)), loop.create_task(node.wait_failed()))
        await asyncio.wait((signals.asked, *tasks), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    goes_on = signals.asked.done() or node.failure is not None
    if not goes_on:
        logger.info("Stopping: the cluster ends")
        if first["temporary"]:
            _delete(Path(properties).parent.parent)
            os._exit(0)
    await node.stop(hands_over=goes_on)
    signals.ignore()
    return 1 if node.failure is not None else 0


async def _orphaned(parent: int) -> None:
    """Return when the parent has ended; a fork of it may keep the pair of sockets open."""
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_S)


async def _serve(control: ClusterControl, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer commands until the cluster's process ends."""
    while (command := await _receive(reader)) is not None:
        _send(writer, await control.answer(command))


async def _receive(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Return the next line; None at the end."""
    try:
        line = await reader.readline()
    except ConnectionError:
        return None
    found: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
    return found


def _send(writer: asyncio.StreamWriter, answer: dict[str, Any]) -> None:
    writer.write(json.dumps(answer).encode() + b"\n")


def _delete(folder: Path) -> None:
    """Delete the cluster's folder; the other nodes do the same, and one of them may still write."""
    for _ in range(_DELETIONS):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
