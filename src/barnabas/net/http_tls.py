"""TLS of the HTTP port. A port in plain text does not load this module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.net.tls_transport import TlsTransport
from barnabas.protocol.framing import READ_BYTES
from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import server_context

if TYPE_CHECKING:
    from barnabas.net.tls_transport import Encrypted

__all__ = ["over_tls"]


def over_tls(
    settings: Mapping[str, str], prefix: str, loop: asyncio.AbstractEventLoop
) -> Callable[[Encrypted], asyncio.BaseProtocol]:
    """Return what puts TLS below the connections of one port.

    Args:
        settings: of the key store, each with the prefix.

    Raises:
        SecuritySettingError: one cannot be used.
    """
    context = server_context(settings, prefix)
    ciphertext = memoryview(bytearray(READ_BYTES))
    return lambda connection: TlsTransport(connection, lambda: TlsLayer(context, is_server=True), ciphertext, loop)
