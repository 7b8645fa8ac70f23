"""EndQuorumEpoch (API key 54, versions 0-1): the leader gives up its epoch.

- `raft.raft_node` has the rules (KIP-595).

Version 1 adds directory ids and endpoints (KIP-853).
"""

from barnabas.api.peer_requests import answer_peer

handle = answer_peer
