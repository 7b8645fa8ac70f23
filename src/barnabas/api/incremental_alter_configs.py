"""IncrementalAlterConfigs (API key 44, versions 0-1): change single settings.

- Sets, deletes, appends to and subtracts from settings of topics, brokers, groups and client metrics (KIP-339).
- Each resource succeeds or fails as a whole.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 1 is flexible.
"""

from barnabas.api.serving.forwarding import forward

handle = forward
