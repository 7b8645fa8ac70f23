"""The APIs this controller serves on its own listeners, in key order; `barnabas.api` has those of a broker.

- `peer_requests` has what the nodes of the quorum send each other, `node_requests` and `broker_heartbeat` what brokers and controllers
  send in their own name.
- A broker sends what its clients want of the controller in an Envelope (KIP-590).
- Administrators who dial a controller (`--bootstrap-controller`, KIP-919) send the rest. Requests that change something, or that only
  the leader of the quorum knows the answer to, get NOT_CONTROLLER from a controller that is not the active one.
- DescribeDelegationToken is in the table and has no answer but an error, as in Kafka.

Sources: the `listeners` of Kafka's message definitions, `ControllerApis`; KIP-500, KIP-595, KIP-919.
"""

from __future__ import annotations

from barnabas.api import APIS, Api

__all__ = ["CONTROLLER_APIS"]


def _own(module: str, min_version: int, max_version: int) -> Api:
    return Api(module, min_version, max_version, min_version)


CONTROLLER_APIS: dict[int, Api] = {
    1: _own("peer_requests", 4, 18),
    17: APIS[17],
    18: APIS[18],
    19: APIS[19],
    20: APIS[20],
    29: APIS[29],
    30: APIS[30],
    31: APIS[31],
    32: APIS[32],
    33: APIS[33],
    36: APIS[36],
    37: APIS[37],
    38: APIS[38],
    39: APIS[39],
    40: APIS[40],
    41: APIS[41],
    43: APIS[43],
    44: APIS[44],
    45: APIS[45],
    46: APIS[46],
    49: APIS[49],
    50: APIS[50],
    51: APIS[51],
    52: _own("peer_requests", 0, 2),
    53: _own("peer_requests", 0, 1),
    54: _own("peer_requests", 0, 1),
    55: _own("describe_own_quorum", 0, 2),
    56: _own("node_requests", 2, 3),
    57: APIS[57],
    58: _own("envelope", 0, 0),
    59: _own("peer_requests", 0, 1),
    60: _own("describe_controllers", 0, 2),
    62: _own("node_requests", 0, 4),
    63: _own("broker_heartbeat", 0, 2),
    64: APIS[64],
    67: _own("node_requests", 0, 0),
    70: _own("node_requests", 0, 0),
    73: _own("node_requests", 0, 0),
    80: _own("voter_changes", 0, 1),
    81: _own("voter_changes", 0, 0),
    82: _own("voter_changes", 0, 0),
    94: APIS[94],
}
