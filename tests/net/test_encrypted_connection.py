"""A connection over a transport with TLS: every byte of a response passes through the transport."""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
from pathlib import Path
from typing import Any

from barnabas.api.serving.context import RequestContext
from barnabas.net.connection import Connection
from barnabas.net.listener import Listener
from tests.net.listening import next_response, on_both_loops
from tests.net.scripted_dispatcher import FETCH, FileSlice, ScriptedDispatcher, request

RECORDS = b"a record in clear text " * 20_000


def context(purpose: int) -> ssl.SSLContext:
    """TLS without certificates: the ciphers encrypt and authenticate nobody, which is enough to see what is on the wire."""
    made = ssl.SSLContext(purpose)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return made


class Wire:
    """A relay that keeps what the server sends."""

    def __init__(self, port: int) -> None:
        self.seen = bytearray()
        self._port = port

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(
            self._relay(reader, server_writer, bytearray()), self._relay(server_reader, writer, self.seen)
        )

    @staticmethod
    async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
        while data := await reader.read(1 << 16):
            seen += data
            writer.write(data)
            await writer.drain()
        writer.close()


@on_both_loops
async def test_records_of_a_file_leave_encrypted(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(RECORDS)
    fd = os.open(tmp_path / "log", os.O_RDONLY)

    def answer(asked: RequestContext, body: bytes) -> Any:
        head = struct.pack(">ii", 4 + len(RECORDS), asked.correlation_id)
        return [bytearray(head), FileSlice(fd, 0, len(RECORDS))]

    loop = asyncio.get_running_loop()
    listener = Listener(loop, host="127.0.0.1")
    listener.serve(ScriptedDispatcher(answer))  # type: ignore[arg-type]
    server = await loop.create_server(
        lambda: Connection(listener), "127.0.0.1", 0, ssl=context(ssl.PROTOCOL_TLS_SERVER)
    )
    wire = Wire(server.sockets[0].getsockname()[1])
    relay = await asyncio.start_server(wire, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", relay.sockets[0].getsockname()[1], ssl=context(ssl.PROTOCOL_TLS_CLIENT)
    )
    writer.write(request(FETCH, 7))
    try:
        assert await next_response(reader) == (7, RECORDS)
    finally:
        assert len(wire.seen) > len(RECORDS)
        assert RECORDS[:23] not in wire.seen
        writer.close()
        await listener.stop()
        server.close()
        relay.close()
        os.close(fd)
