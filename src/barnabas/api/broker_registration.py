"""BrokerRegistration (API key 62, versions 0-4): a broker that starts asks for its epoch.

- The active controller responds after its records are committed (KIP-631).

Version 1 adds ZooKeeper's migration, 2 directories (KIP-858), 3 the last broker epoch (KIP-966), 4 lowest feature level 0.
"""

from barnabas.api.forwarding import forward

handle = forward
