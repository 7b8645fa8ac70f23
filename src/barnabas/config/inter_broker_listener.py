"""The listener between brokers: which of a broker's listeners the other brokers use.

- `inter.broker.listener.name` names it; without that setting it has the name of `security.inter.broker.protocol`.
- A broker without a listener of that name is not reached at another one: that one may lack the protection of the first.

Source: Kafka's `AbstractKafkaConfig.interBrokerListenerName`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.metadata.cluster_image import BrokerRegistration, Endpoint
from barnabas.metadata.config_schema import ConfigValue

__all__ = ["INTER_BROKER_LISTENER", "INTER_BROKER_PROTOCOL", "InterBrokerListener"]

INTER_BROKER_LISTENER = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"


class InterBrokerListener(NamedTuple):
    """The listener between brokers, as one node's settings have it.

    Attributes:
        name: in capitals.
        is_given: whether `inter.broker.listener.name` names it.
    """

    name: str
    is_given: bool

    @classmethod
    def of_settings(cls, value: Callable[[str], ConfigValue]) -> InterBrokerListener:
        """Return the listener of a node.

        Args:
            value: returns a broker setting's value by Kafka's name.
        """
        given = value(INTER_BROKER_LISTENER)
        return cls(str(given or value(INTER_BROKER_PROTOCOL)).upper(), bool(given))

    def of_broker(self, registration: BrokerRegistration) -> Endpoint | None:
        """Return where another broker is reached; None if it has no such listener."""
        return registration.listener(self.name)
