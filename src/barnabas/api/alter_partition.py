"""AlterPartition (API key 56, versions 2-3): the leader of a partition proposes in-sync replicas.

- Brokers send it to the active controller, which responds after its records are committed (KIP-497).

Version 2 adds topic ids (KIP-841), 3 the epochs of the brokers in the ISR (KIP-903).
"""

from barnabas.api.forwarding import forward

handle = forward
