"""AlterPartitionReassignments (API key 45, versions 0-1): move partitions to other replicas, or cancel such a move.

- The broker forwards the request to the active controller, which responds after its records are committed.

Version 0 is flexible (KIP-455), 1 may forbid a change of the replication factor (KIP-860).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
