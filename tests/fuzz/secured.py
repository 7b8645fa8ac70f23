"""Hostile connections to a listener with TLS and logins: `sockets` lets some of its connections come here.

no TLS · a changed ClientHello · TLS, and then bytes, changed frames of a login, requests before it, or silence
"""

from __future__ import annotations

import asyncio
import struct
import time
from pathlib import Path
from random import Random

from barnabas.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.sasl.oauth_messages import bearer_login
from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import client_context
from tests.fuzz.frames import Frames
from tests.fuzz.messages import mutated
from tests.token_server import AUDIENCE, ISSUER, TokenIssuer

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredListener:
    """The settings of a listener with all mechanisms, and what its hostile clients send.

    Args:
        folder: for certificates and keys.
    """

    def __init__(self, folder: Path, random: Random) -> None:
        self.random = random
        authority = DevelopmentAuthority.create(time.time_ns() // 1_000_000)
        node = authority.issue("CN=node", hosts=["127.0.0.1"])
        (folder / "node.pem").write_text(node.key + node.certificate)
        self._context = client_context(
            {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate}
        )
        hello = TlsLayer(self._context, is_server=False, server_name="127.0.0.1")
        self._hellos = [hello.to_send()]
        tokens = TokenIssuer()
        (folder / "keys.json").write_bytes(tokens.document())
        self._messages = [
            b"\0alice\0secret", b"n,,n=alice,r=x", b"c=biws,r=x,p=AAAA", bearer_login(tokens.token("alice"), {}), b"",
        ]  # fmt: skip
        self.settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "node.pem"),
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_alice="secret";',
            "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "connection.failed.authentication.delay.ms": "1",
        }

    async def harm(self, port: int, source: Frames) -> int:
        """Open one connection and do one kind of harm; return the number of frames. Raises OSError, EOFError, TimeoutError."""
        random = self.random
        kind = random.randrange(5)
        context = self._context if kind > 1 else None
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        sent = 1
        try:
            if kind == 0:
                writer.write(random.choice((b"GET / HTTP/1.1\r\n\r\n", random.randbytes(200), _framed(source.one()))))
            elif kind == 1:
                hello = mutated(random, random.choice(self._hellos), self._hellos)
                writer.write(hello[: random.choice((5, 50, 5000))])
            elif kind == 2:
                # No request is served before the login.
                writer.write(_framed(source.one()))
            else:
                sent = await self._log_in(reader, writer)
            await asyncio.wait_for(reader.read(1 << 16), 0.2)
        finally:
            writer.transport.abort()
        return sent

    async def _log_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        """Send a handshake and a few messages, most of them wrong; return how many."""
        random = self.random
        version = random.randrange(2)
        handshake = SaslHandshakeRequest(mechanism=random.choice((*MECHANISMS, *MECHANISMS, "GSSAPI", "")))
        frames = [_request(17, version, handshake.encode(version))]
        for _ in range(random.randrange(4)):
            message = mutated(random, random.choice(self._messages), self._messages)
            wrapped = _request(36, 2, SaslAuthenticateRequest(auth_bytes=message).encode(2))
            frames.append(message if version == 0 else wrapped)
        for frame in frames:
            changed = mutated(random, frame, frames) if random.random() < 0.2 else frame
            writer.write(_framed(changed))
            await asyncio.wait_for(writer.drain(), 0.5)
            async with asyncio.timeout(0.5):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
        return len(frames)


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _request(key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhih", key, version, 1, 3) + b"eve"
    return head + (b"\0" if (key, version) == (36, 2) else b"") + body
