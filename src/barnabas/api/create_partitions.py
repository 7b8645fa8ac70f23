"""CreatePartitions (API key 37, versions 0-3): raise a topic's number of partitions.

- With or without an assignment; the number is never lowered.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 2 is flexible, 3 may return quota errors (KIP-599).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
