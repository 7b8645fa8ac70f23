"""UpdateFeatures (API key 57, versions 0-2): finalize feature levels, or only check them.

- The broker forwards the request to the active controller, which responds after its records are committed.

Version 1 adds the upgrade type (KIP-584, KIP-778), 2 returns one error for the whole request (KIP-1022).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
