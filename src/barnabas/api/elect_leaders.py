"""ElectLeaders (API key 43, versions 0-2): preferred and unclean elections.

- With one replica every election is ELECTION_NOT_NEEDED.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 1 adds the election type (KIP-460), 2 is flexible.
"""

from barnabas.api.serving.forwarding import forward

handle = forward
