"""Errors of the connection to a broker, in addition to the errors that the broker returns.

    KafkaError
    ├─ OtherProtocol             BROKER_NOT_AVAILABLE: the address is not a Kafka listener that we can use
    │  └─ OtherSecurity          BROKER_NOT_AVAILABLE: the listener and the client's security settings do not fit
    └─ RetriableError
       ├─ BrokerNotAvailable     BROKER_NOT_AVAILABLE: no broker answers at the address
       ├─ ConnectionLost         NETWORK_EXCEPTION: the connection ended with requests unanswered
       └─ RequestTimedOut        REQUEST_TIMED_OUT: no answer within the deadline

Each message names the address.
"""

from __future__ import annotations

import os
import socket

from barnabas.protocol.errors import ErrorCode, KafkaError, RetriableError


class OtherProtocol(KafkaError):
    """The address is not one of a broker that we can use: no retry helps."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.message}"


class OtherSecurity(OtherProtocol):
    """The listener and the client's security settings do not fit; the message says which setting to look at."""


class ClientError(RetriableError):
    """The connection failed; the broker may or may not have carried out the request."""

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.message}"


class BrokerNotAvailable(ClientError):
    """No connection to the address."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)


class ConnectionLost(ClientError):
    """The broker closed the connection, or the network did."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class ConnectionRefused(BrokerNotAvailable):
    """The machine is up, and nothing listens there; a user reads the same as of any address that cannot be reached."""

    def __str__(self) -> str:
        return f"{BrokerNotAvailable.__name__}: {self.message}"


class RequestTimedOut(ClientError):
    """The deadline passed before the broker answered."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


def cannot_connect(address: str, error: OSError, timeout_ms: int) -> BrokerNotAvailable:
    """Return the error of an attempt to connect that failed with `error`, or ended after `timeout_ms`."""
    if isinstance(error, TimeoutError):
        reason = f"no answer within {timeout_ms} ms: a firewall, or the wrong host?"
    elif isinstance(error, socket.gaierror):
        reason = "the host name does not resolve"
    else:
        # asyncio puts a tuple into the text of an error.
        reason = (os.strerror(error.errno) if error.errno else str(error)).lower()
    if isinstance(error, ConnectionRefusedError):
        return ConnectionRefused(f"cannot reach {address}: {reason}")
    return BrokerNotAvailable(f"cannot reach {address}: {reason}")
