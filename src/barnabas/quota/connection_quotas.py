"""Limits on connections and connection rates: of the broker, of a listener, of an address.

    arrives ──► rate of broker and listener ──► room? ──► rate of the address ──► number of the address ──► admitted
                      │ too fast: waits            │ none: waits     │ too fast: closed later   │ too many: closed
                      ▼                            ▼                 ▼                          ▼

- Connections wait in order: first for the rate, then for room. Kafka's acceptor thread blocks meanwhile, and with it all later
  connections; the listener's queue does the same.
- A connection from an address that connects too often is accepted by the operating system, not read, and closed after its wait, so
  that reconnecting immediately gains nothing. It counts neither as a connection nor against the broker's rate.
- max.connections does not apply to the listener between brokers if there are others: clients cannot lock brokers out.
- A wait is one window at most.

Sources: Kafka's `ConnectionQuotas`, `Acceptor.accept`; KIP-402, KIP-306, KIP-612.
"""

from __future__ import annotations

import enum
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.metadata.client_quotas_image import QuotaEntity
from barnabas.quota.rate import Rate

__all__ = ["Admission", "ConnectionLimits", "ConnectionQuotas", "Door", "parse_overrides"]

UNLIMITED = 2**31 - 1
IP, CONNECTION_RATE = "ip", "connection_creation_rate"


class ConnectionLimits(NamedTuple):
    """The settings of the broker and of its listeners.

    Attributes:
        overrides: max.connections.per.ip.overrides, by address.
        listeners: max.connections and max.connection.creation.rate by listener name.
        protected_listener: the listener to which max.connections does not apply; None if there is only one listener.
    """

    connections: int = UNLIMITED
    per_ip: int = UNLIMITED
    overrides: Mapping[str, int] = {}
    creation_rate: int = UNLIMITED
    listeners: Mapping[str, tuple[int, int]] = {}
    protected_listener: str | None = None


class Door(enum.Enum):
    """The fate of a connection that has room."""

    OPEN = "admitted"
    CLOSE_LATER = "closed later"
    CLOSED = "closed"


class Admission(NamedTuple):
    """A door, with `wait_ms` for CLOSE_LATER and `reason` for CLOSED."""

    door: Door
    wait_ms: int = 0
    reason: str = ""


_OPEN = Admission(Door.OPEN)


def parse_overrides(text: str) -> dict[str, int]:
    """Parse `address:count,…` of max.connections.per.ip.overrides.

    Raises:
        ValueError: with one sentence.
    """
    overrides: dict[str, int] = {}
    if not text:
        return overrides
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        host, separator, count = part.rpartition(":")
        if not separator or not count.strip().isdecimal():
            raise ValueError(
                f"Invalid value {part} for configuration max.connections.per.ip.overrides: use address:count"
            )
        host = host.strip().strip("[]")
        try:
            ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        except ValueError:
            raise ValueError(
                f"Invalid value {part} for configuration max.connections.per.ip.overrides: {host} is not an address"
            ) from None
        overrides["127.0.0.1" if host == "localhost" else host] = int(count)
    return overrides


class ConnectionQuotas:
    """The connections of one broker, all listeners together.

    Args:
        samples, window_seconds: quota.window.num and quota.window.size.seconds.
    """

    def __init__(self, limits: ConnectionLimits | None = None, samples: int = 11, window_seconds: int = 1) -> None:
        self.limits = limits or ConnectionLimits()
        self.total = 0
        self.by_listener: dict[str, int] = {}
        self.by_ip: dict[str, int] = {}
        self._samples = samples
        self._window_ms = window_seconds * 1000
        self._rates: dict[tuple[str, str], Rate] = {}
        self._default_ip_rate: float = UNLIMITED
        self._ip_rates: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<ConnectionQuotas {self.total} connections from {len(self.by_ip)} addresses>"

    def apply(self, changed: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
        """Apply committed changes of the rates by address; None removes a rate."""
        for entity, limits in changed.items():
            kinds = dict(entity)
            if IP not in kinds or CONNECTION_RATE not in limits:
                continue
            limit, address = limits[CONNECTION_RATE], kinds[IP]
            if address is None:
                self._default_ip_rate = UNLIMITED if limit is None else limit
            elif limit is None:
                self._ip_rates.pop(address, None)
            else:
                self._ip_rates[address] = limit

    def expire(self, now_ms: int, silence_ms: int = 3_600_000) -> None:
        """Drop the rates of addresses without a connection for an hour."""
        for key in [key for key, rate in self._rates.items() if now_ms - rate.last_ms > silence_ms]:
            del self._rates[key]

    def _exceeded_ms(self, kind: str, name: str, limit: float, now_ms: int) -> int:
        """Count a connection against a rate and return how long until the rate is within the limit."""
        if limit >= UNLIMITED:
            return 0
        rate = self._rates.get((kind, name))
        if rate is None:
            rate = self._rates[kind, name] = Rate(self._samples, self._window_ms, now_ms)
        rate.record(1.0, now_ms)
        return min(rate.throttle_ms(max(limit, 1e-9), now_ms), self._window_ms)

    def _take_back(self, kind: str, name: str, now_ms: int) -> None:
        rate = self._rates.get((kind, name))
        if rate is not None:
            rate.record(-1.0, now_ms)

    def arrive(self, listener: str, now_ms: int) -> int:
        """Count the first connection of the queue against the rates and return how long it must wait."""
        _, listener_rate = self.limits.listeners.get(listener, (UNLIMITED, UNLIMITED))
        wait_ms = self._exceeded_ms("listener", listener, listener_rate, now_ms)
        if listener == self.limits.protected_listener:
            return wait_ms
        return max(wait_ms, self._exceeded_ms("broker", "", self.limits.creation_rate, now_ms))

    def has_room(self, listener: str) -> bool:
        """Return whether the listener may have one more connection."""
        most, _ = self.limits.listeners.get(listener, (UNLIMITED, UNLIMITED))
        if self.by_listener.get(listener, 0) >= most:
            return False
        return listener == self.limits.protected_listener or self.total < self.limits.connections

    def admit(self, listener: str, ip: str, now_ms: int) -> Admission:
        """Decide on a connection that has waited and has room; count it if it is OPEN."""
        wait_ms = self._exceeded_ms("ip", ip, self._ip_rates.get(ip, self._default_ip_rate), now_ms)
        if wait_ms:
            self._take_back("ip", ip, now_ms)
            self._take_back("listener", listener, now_ms)
            if listener != self.limits.protected_listener:
                self._take_back("broker", "", now_ms)
            return Admission(Door.CLOSE_LATER, wait_ms)
        most = self.limits.overrides.get(ip, self.limits.per_ip)
        if self.by_ip.get(ip, 0) >= most:
            return Admission(Door.CLOSED, 0, f"address already has the configured maximum of {most} connections")
        self.total += 1
        self.by_ip[ip] = self.by_ip.get(ip, 0) + 1
        self.by_listener[listener] = self.by_listener.get(listener, 0) + 1
        return _OPEN

    def leave(self, listener: str, ip: str) -> None:
        """Remove an admitted connection from the counts."""
        self.total -= 1
        self.by_listener[listener] -= 1
        self.by_ip[ip] -= 1
        if not self.by_ip[ip]:
            del self.by_ip[ip]

    @property
    def excess(self) -> int:
        """How many connections exceed a lowered max.connections."""
        return max(0, self.total - self.limits.connections)
