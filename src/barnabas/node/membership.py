"""Whether a node is alone or a member of a cluster: decided here, once, when the node is made.

A node alone has both roles, names no other node in its settings, and has no listener for controllers: no other node can reach it. A node
that names no other but has such a listener is a member, since others may join its quorum at any time.

What follows from it is in `node/alone` and `node/member`, two classes with the same methods. No other module of this room asks.

Limit: `BrokerConfig.is_alone` is another question, of formatting: may this node found a cluster by itself?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from barnabas.node.alone import Alone

if TYPE_CHECKING:
    from barnabas.config.config import BrokerConfig
    from barnabas.config.runtime import Runtime
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.node.member import Member

__all__ = ["Membership", "membership_of"]

Membership: TypeAlias = "Alone | Member"


def membership_of(config: BrokerConfig, runtime: Runtime, stores: RenewedStores) -> Membership:
    """Return what the node of these settings does alone, or as a member.

    Args:
        stores: of its listeners and connections.
    """
    if config.is_alone and not config.controller_listeners:
        return Alone(config)
    # Connections to other nodes, for which the start of a node alone does not pay.
    from barnabas.node.member import Member

    return Member(config, runtime, stores)
