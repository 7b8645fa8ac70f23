"""`early.start.listeners`: the listeners that serve before the access control lists are loaded; by default those of controllers.

Before that an authorizer answers super users alone, so nodes must be super users where a quorum has to form first. Without an authorizer
the setting means nothing.

Source: `earlyStartListeners` of Kafka's `KafkaConfig`, `StandardAuthorizer.start`.
"""

from __future__ import annotations

from barnabas.config.node_roles import NodeRoles
from barnabas.metadata.config_schema import ConfigError
from barnabas.words.printable import printable

__all__ = ["EARLY_START_LISTENERS", "early_start_listeners"]

EARLY_START_LISTENERS = "early.start.listeners"


def early_start_listeners(config: NodeRoles) -> frozenset[str]:
    """Return the names of these listeners.

    Raises:
        ConfigError: the setting names a listener that this node does not have.
    """
    given = config.value(EARLY_START_LISTENERS)
    of_controllers = [each.name for each in config.controller_listeners]
    if given is None:
        return frozenset(of_controllers)
    assert isinstance(given, tuple), given
    names = frozenset(name for each in given if (name := each.strip()))
    known = [*(each.name for each in config.listeners), *of_controllers]
    for name in sorted(names):
        if name not in known:
            raise ConfigError(
                f"{EARLY_START_LISTENERS} contains listener {printable(name)}, but this is not contained in listeners or "
                f"controller.listener.names; this node has {', '.join(map(printable, known)) or 'none'}"
            )
    return names
