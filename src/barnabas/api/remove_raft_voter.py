"""RemoveRaftVoter (API key 81, version 0): take a controller out of the voters of the quorum (KIP-853).

- The broker forwards the request to the active controller, which leads the quorum; `voter_changes` is the controller's side.
"""

from barnabas.api.serving.forwarding import forward

handle = forward
