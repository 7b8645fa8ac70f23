"""ControllerRegistration (API key 70, version 0): a controller tells where it listens and what it supports.

- The active controller responds after its record is committed (KIP-919).
"""

from barnabas.api.forwarding import forward

handle = forward
