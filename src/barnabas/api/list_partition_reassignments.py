"""ListPartitionReassignments (API key 46, version 0): the partitions that are moving.

- `kafka-topics --describe` always asks for them.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 0 is flexible (KIP-455).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
