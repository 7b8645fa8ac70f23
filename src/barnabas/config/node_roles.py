"""A node's place among others, as its settings have it: its roles, its listeners, and the quorum that it names.

`BrokerConfig` is one. The checks of settings that contradict each other (`role_checks`, `config_checks`) need no more of it than this.
"""

from __future__ import annotations

from barnabas.config.endpoints import Listener
from barnabas.config.inter_broker_listener import InterBrokerListener
from barnabas.config.setting_values import SettingValues
from barnabas.raft.voters import Voter

__all__ = ["NodeRoles"]


class NodeRoles(SettingValues):
    """What one node is for its clients and for other nodes.

    Attributes:
        listeners: client listeners; `controller_listeners` are the others.
        advertised_listeners: those of clients, None for `auto`; `advertised_controller_listeners` are the others.
        quorum_voters: the voters that `controller.quorum.voters` names, in id order; none in a quorum that can grow.
        quorum_bootstrap_servers: host and port of the nodes that know the quorum.
        is_alone: this node has both roles, and its settings name no other node.
        has_other_voters: this node is a controller, and its settings name other nodes of the quorum.
    """

    node_id: int
    process_roles: tuple[str, ...]
    listeners: tuple[Listener, ...]
    controller_listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...] | None
    advertised_controller_listeners: tuple[Listener, ...]
    quorum_voters: tuple[Voter, ...]
    quorum_bootstrap_servers: tuple[tuple[str, int], ...]
    is_alone: bool
    has_other_voters: bool

    @property
    def is_broker(self) -> bool:
        """Whether this node keeps partitions and serves clients."""
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        """Whether this node may vote in the quorum."""
        return "controller" in self.process_roles

    @property
    def inter_broker_listener(self) -> InterBrokerListener:
        """The listener at which brokers reach each other; a node alone may have no listener of that name."""
        return InterBrokerListener.of_settings(self.value)
