"""AddRaftVoter (API key 80, versions 0-1): make a controller a voter of the quorum (KIP-853).

- The broker forwards the request to the active controller, which leads the quorum; `voter_changes` is the controller's side.

Version 1 may acknowledge before the commit (KIP-1186).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
