"""AssignReplicasToDirs (API key 73, version 0): a broker tells in which of its directories replicas are.

- The active controller responds after its records are committed (KIP-858).
"""

from barnabas.api.forwarding import forward

handle = forward
