"""BeginQuorumEpoch (API key 53, versions 0-1): the leader of a new epoch tells this voter of itself.

- `raft.raft_node` has the rules (KIP-595).

Version 1 adds directory ids and the leader's endpoints (KIP-853).
"""

from barnabas.api.peer_requests import answer_peer

handle = answer_peer
