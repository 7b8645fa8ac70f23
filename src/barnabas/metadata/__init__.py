"""The cluster's metadata: the committed state, and the controller that changes it.

The way of a change, file by file:

    local_controller       the entry: answers NOT_CONTROLLER, or has a `QuorumController` while this node is active
    quorum_controller      takes a request, appends the records of its manager's answer, answers after the commit
    managers               which manager answers which request
    create_topics, …       the managers: functions from a `ControllerView` and a request to records and a response
    record_codec           records to bytes, in the version that `metadata_version` calls for
    metadata_loader        follows the committed log on every node, owns the image, calls publishers
    metadata_batch_loader  batches and snapshots back to records
    delta, image           records to the next image; each part of the image has its own module
    image_difference       what a snapshot changes
    snapshot_generator     writes a snapshot of the image when one is due; `snapshots` has the format
    config_schema          types and bounds of settings; config_entries: which value is in force, and why

Invariants
- An image never changes; a delta is the only way to the next one; replaying the same records gives the same image.
- Managers change nothing: they return records, and state moves when those are replayed.
- A record that cannot be replayed stops the node.

Sources: KIP-500, KIP-631; Kafka's `org.apache.kafka.{image,metadata,controller}`.
"""
