"""UnregisterBroker (API key 64, version 0): forget a broker that is gone for good.

- The broker forwards the request to the active controller, which responds after its records are committed.

Version 0 is flexible (KIP-631).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
