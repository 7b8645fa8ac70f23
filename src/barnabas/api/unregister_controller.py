"""UnregisterController (API key 94, version 0): forget a controller that is gone for good.

- It is no voter any more (RemoveRaftVoter), and stopped: else it registers again.
- The broker forwards the request to the active controller, which responds after its record is committed.

Version 0 is flexible (KIP-1312).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
