"""An application is served until somebody stops the server."""

from __future__ import annotations

import threading
import urllib.request

import pytest
from starlette.responses import PlainTextResponse

from barnabas.http_serving import HttpServer, listening_socket


def test_it_serves_until_it_is_stopped() -> None:
    ready = threading.Event()
    server = HttpServer(_app, ready.set)
    with listening_socket("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        assert ready.wait(60)
        with urllib.request.urlopen(f"http://127.0.0.1:{listener.getsockname()[1]}/here", timeout=60) as answer:
            assert answer.read() == b"/here"
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_a_port_that_is_taken() -> None:
    with listening_socket("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listening_socket("127.0.0.1", first.getsockname()[1])


async def _app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
    else:
        await PlainTextResponse(scope["path"])(scope, receive, send)
