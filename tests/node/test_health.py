"""Health checks of a node: what they answer before, while and after it serves."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.log.disk import OsDisk
from barnabas.node.broker import BrokerServer
from barnabas.node.node import Node
from barnabas.process.commands import epoch_ms


def make_node(folder: Path, loop: asyncio.AbstractEventLoop) -> Node:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "barnabas.metrics.listen": "127.0.0.1:0",
    }
    config = BrokerConfig.from_properties(properties, embedded=True)
    return Node(config, loop=loop, disk=OsDisk(), now_ms=epoch_ms, random=random.Random(1))


async def get(node: Node, path: str) -> tuple[int, str]:
    assert node.metrics is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", node.metrics.http.port)
    writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()


async def statuses(node: Node) -> list[tuple[int, str]]:
    return [await get(node, path) for path in ("/healthz", "/readyz")]


def test_a_node_is_ready_while_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[tuple[int, str]]] = {}

    async def story() -> None:
        node = make_node(tmp_path, asyncio.get_running_loop())

        async def bind() -> None:
            seen["starting"] = [*await statuses(node), await get(node, "/metrics")]
            await BrokerServer.bind(node.broker)

        async def flush_logs() -> None:
            seen["stopping"] = await statuses(node)

        monkeypatch.setattr(node.broker, "bind", bind)
        monkeypatch.setattr(node, "_flush_logs", flush_logs)
        await node.start()
        seen["serving"] = await statuses(node)
        assert (await get(node, "/metrics"))[0] == 200
        brokers = node.broker.image.cluster.brokers
        fenced = node.broker.image.cluster._replace(brokers={**brokers, 1: brokers[1]._replace(fenced=True)})
        node.broker.image = node.broker.image._replace(cluster=fenced)
        seen["fenced"] = await statuses(node)
        await node.stop()
        with pytest.raises(ConnectionError):
            await get(node, "/healthz")

    asyncio.run(story())
    alive = (200, "ok\n")
    assert seen == {
        "starting": [alive, (503, "not ready: starting\n"), (503, "not ready: starting\n")],
        "serving": [alive, (200, "ready\n")],
        "fenced": [alive, (503, "not ready: the broker is fenced\n")],
        "stopping": [alive, (503, "not ready: stopping\n")],
    }


def test_the_front_page_links_to_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        node = make_node(tmp_path, asyncio.get_running_loop())
        await node.start()
        status, page = await get(node, "/")
        assert status == 200
        for path in ("/metrics", "/healthz", "/readyz"):
            assert f'<a href="{path}">' in page
            assert (await get(node, path))[0] == 200
        await node.stop()

    asyncio.run(story())


def test_a_start_that_fails_leaves_no_port_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        node = make_node(tmp_path, asyncio.get_running_loop())

        async def bind() -> None:
            raise CannotStart("the port is in use")

        monkeypatch.setattr(node.broker, "bind", bind)
        with pytest.raises(CannotStart):
            await node.start()
        with pytest.raises(ConnectionError):
            await get(node, "/healthz")

    asyncio.run(story())
