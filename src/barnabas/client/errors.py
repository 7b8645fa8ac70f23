"""What can go wrong between us and a broker, besides the errors the broker answers with. Shell plane.

    KafkaError
    └─ RetriableError
       ├─ BrokerNotAvailable     BROKER_NOT_AVAILABLE: nobody answers at the address
       ├─ ConnectionLost         NETWORK_EXCEPTION: the connection ended with requests unanswered
       └─ RequestTimedOut        REQUEST_TIMED_OUT: no answer within the deadline

All three carry the address, because "connection refused" without an address helps nobody.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, RetriableError


class ClientError(RetriableError):
    """Raised on our side of the connection; the request may or may not have been carried out."""

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


class RequestTimedOut(ClientError):
    """The deadline passed before the answer came."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)
