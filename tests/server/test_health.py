"""Health checks of a node: what they answer before, while and after it serves."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from barnabas.log.disk import OsDisk
from barnabas.server.broker import BrokerServer, CannotStart
from barnabas.server.commands import epoch_ms
from barnabas.server.config import BrokerConfig


def node(folder: Path, loop: asyncio.AbstractEventLoop) -> BrokerServer:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "barnabas.metrics.listen": "127.0.0.1:0",
    }
    config = BrokerConfig.from_properties(properties, embedded=True)
    return BrokerServer(config, loop=loop, disk=OsDisk(), now_ms=epoch_ms, random=random.Random(1))


async def get(server: BrokerServer, path: str) -> tuple[int, str]:
    assert server.metrics is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics.http.port)
    writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode()


async def statuses(server: BrokerServer) -> list[tuple[int, str]]:
    return [await get(server, path) for path in ("/healthz", "/readyz")]


def test_a_node_is_ready_while_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[tuple[int, str]]] = {}

    async def story() -> None:
        server = node(tmp_path, asyncio.get_running_loop())

        async def bind() -> None:
            seen["starting"] = [*await statuses(server), await get(server, "/metrics")]
            await BrokerServer._bind(server)

        async def flush_logs() -> None:
            seen["stopping"] = await statuses(server)

        monkeypatch.setattr(server, "_bind", bind)
        monkeypatch.setattr(server, "_flush_logs", flush_logs)
        await server.start()
        seen["serving"] = await statuses(server)
        assert (await get(server, "/metrics"))[0] == 200
        brokers = server._image.cluster.brokers
        fenced = server._image.cluster._replace(brokers={**brokers, 1: brokers[1]._replace(fenced=True)})
        server._image = server._image._replace(cluster=fenced)
        seen["fenced"] = await statuses(server)
        await server.stop()
        with pytest.raises(ConnectionError):
            await get(server, "/healthz")

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
        server = node(tmp_path, asyncio.get_running_loop())
        await server.start()
        status, page = await get(server, "/")
        assert status == 200
        for path in ("/metrics", "/healthz", "/readyz"):
            assert f'<a href="{path}">' in page
            assert (await get(server, path))[0] == 200
        await server.stop()

    asyncio.run(story())


def test_a_start_that_fails_leaves_no_port_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        server = node(tmp_path, asyncio.get_running_loop())

        async def bind() -> None:
            raise CannotStart("the port is in use")

        monkeypatch.setattr(server, "_bind", bind)
        with pytest.raises(CannotStart):
            await server.start()
        with pytest.raises(ConnectionError):
            await get(server, "/healthz")

    asyncio.run(story())
