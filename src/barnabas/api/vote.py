"""Vote (API key 52, versions 0-2): a controller asks for this one's vote.

- `raft.raft_node` has the rules; the answer names the leader if there is one.

Version 1 adds directory ids and endpoints (KIP-853), 2 the pre-vote (KIP-996).
"""

from barnabas.api.peer_requests import answer_peer

handle = answer_peer
