"""The limits on the connections of a broker or a controller, static and dynamic, shared by its listeners.

- `max.connections`, `max.connections.per.ip`, its overrides and `max.connection.creation.rate` may change while the node runs. The
  first and the last also exist for one listener, as `listener.name.<name>.…`.
- A lower `max.connections` closes the connections that have been silent longest; a higher one admits waiting connections.
- A dynamic value that does not parse is logged and changes nothing.
- Broker and controller of one process count their connections apart, as in Kafka. They share memory and descriptors, of which the
  process has only so many.

Limits: `max.connections.per.ip.overrides` takes addresses and `localhost`; other names are not resolved.

Source: Kafka's `ConnectionQuotas`, `DynamicListenerConfig`; KIP-402, KIP-612, KIP-72.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from barnabas.config.config import BrokerConfig, merged_broker_properties
from barnabas.config.config_table import config_schema
from barnabas.config.endpoints import Listener as Endpoint
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.net.descriptors import Descriptors
from barnabas.net.listener import Listener
from barnabas.net.request_memory import RequestMemory
from barnabas.quota.connection_quotas import UNLIMITED, ConnectionLimits, ConnectionQuotas, parse_overrides
from barnabas.repeated_lines import RepeatedLines

__all__ = ["Connections"]

logger = logging.getLogger(__name__)

_NAMES = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)


class Connections:
    """The quotas, the memory and the descriptors that the listeners of a broker or a controller share.

    Args:
        open_log_files: how many descriptors are for segment files.
        endpoints: the entries of `listeners` that they serve; None for the broker's.
        beside: those of the broker, for the controller in the same process.

    Attributes:
        quotas: decides which connections are admitted.
        memory: bounds the requests being read; None without a bound.
        lines: the lines of log about peers.
        descriptors: bounds the connections that are open.
    """

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Sequence[Listener],
        loop: asyncio.AbstractEventLoop,
        open_log_files: int,
        *,
        endpoints: Sequence[Endpoint] | None = None,
        beside: Connections | None = None,
    ) -> None:
        self._config = config
        self._names = [endpoint.name for endpoint in (config.listeners if endpoints is None else endpoints)]
        self._listeners = listeners
        self.quotas = ConnectionQuotas(
            samples=config.int_value("quota.window.num"), window_seconds=config.int_value("quota.window.size.seconds")
        )
        self.lines = RepeatedLines(loop)
        self.descriptors: Descriptors
        self.memory: RequestMemory | None
        if beside is not None:
            self.descriptors, self.memory = beside.descriptors, beside.memory
            return
        self.descriptors = Descriptors.of_this_process(open_log_files)
        limit = config.queued_max_request_bytes
        if "queued.max.request.bytes" not in config.properties:
            limit = max(limit, config.socket_request_max_bytes)
        self.memory = RequestMemory(limit, loop) if limit > 0 else None

    def __repr__(self) -> str:
        return f"<Connections {self.quotas!r} {self.memory!r}>"

    def configure(self) -> None:
        """Apply the static settings.

        Raises:
            ValueError: a setting is not valid; the text is one line.
        """
        if self.memory is not None and self.memory.limit_bytes < self._config.socket_request_max_bytes:
            raise ValueError(
                f"queued.max.request.bytes {self.memory.limit_bytes} must be larger or equal to "
                f"socket.request.max.bytes {self._config.socket_request_max_bytes}"
            )
        self.quotas.limits = self._limits(self._config.properties)

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit of the metadata log."""
        if delta.client_quotas is not None:
            self.quotas.apply(delta.client_quotas.changed)
        if delta.configs is None:
            return
        broker = str(self._config.node_id)
        if not any(kind == ConfigResourceType.BROKER and name in ("", broker) for kind, name in delta.configs.changed):
            return
        dynamic = (
            image.configs.for_resource(ConfigResourceType.BROKER, ""),
            image.configs.for_resource(ConfigResourceType.BROKER, broker),
        )
        try:
            limits = self._limits(merged_broker_properties(self._config, *dynamic))
        except ValueError as error:
            logger.error("The limits on connections are unchanged: %s", error)
            return
        if limits != self.quotas.limits:
            self.quotas.limits = limits
            self._close_excess()
            self.look_for_room()

    def look_for_room(self) -> None:
        """Admit waiting connections on every listener; a connection that leaves one listener makes room on another."""
        for listener in self._listeners:
            listener.look_for_room()

    def _close_excess(self) -> None:
        excess = self.quotas.excess
        for listener in self._listeners:
            if excess and listener.name != self.quotas.limits.protected_listener:
                excess -= listener.close_silent(excess)

    def _limits(self, properties: Mapping[str, str]) -> ConnectionLimits:
        keys = config_schema().of(ConfigResourceType.BROKER)
        most, per_ip, overrides, rate = (
            keys[name].parse(properties[name]) if name in properties else keys[name].default_value() for name in _NAMES
        )
        assert isinstance(most, int)
        assert isinstance(per_ip, int)
        assert isinstance(rate, int)
        names = self._names
        return ConnectionLimits(
            connections=most,
            per_ip=per_ip,
            overrides=parse_overrides(str(overrides or "")),
            creation_rate=rate,
            listeners={name: self._listener_limits(name, properties) for name in names},
            protected_listener=self._config.inter_broker_listener.name if len(names) > 1 else None,
        )

    @staticmethod
    def _listener_limits(name: str, properties: Mapping[str, str]) -> tuple[int, int]:
        prefix = f"listener.name.{name.lower()}."
        found = []
        for setting in ("max.connections", "max.connection.creation.rate"):
            text = properties.get(prefix + setting, str(UNLIMITED))
            if not text.isdecimal() or int(text) <= 0:
                raise ValueError(f"Invalid {prefix}{setting} {text}")
            found.append(int(text))
        return found[0], found[1]
