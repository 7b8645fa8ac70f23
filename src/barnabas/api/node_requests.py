"""The own requests of brokers and controllers to the active controller.

    AlterPartition         (API key 56, versions 2-3)   the leader of a partition proposes in-sync replicas (KIP-497);
                                                        2 adds topic ids (KIP-841), 3 the brokers' epochs (KIP-903)
    BrokerRegistration     (62, versions 0-4)           a broker that starts asks for its epoch (KIP-631); 1 adds ZooKeeper's migration,
                                                        2 directories (KIP-858), 3 the last epoch (KIP-966), 4 lowest feature level 0
    AllocateProducerIds    (67, version 0)              a broker asks for a block of producer ids (KIP-730)
    ControllerRegistration (70, version 0)              a controller sends its listeners and features (KIP-919)
    AssignReplicasToDirs   (73, version 0)              a broker names the directories of its replicas (KIP-858)

- The active controller responds after its records are committed; any other one returns NOT_CONTROLLER.
- `api.broker_heartbeat` has the heartbeats.

Source: Kafka's `ControllerApis`.
"""

from barnabas.api.serving.forwarding import forward

handle = forward
