"""DescribeQuorum (API key 55, versions 0-2): the voters and observers of the metadata log.

- Only `__cluster_metadata` partition 0 has a quorum (KIP-595).
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 1 adds fetch times (KIP-836), 2 directory ids and listeners (KIP-853).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
