"""A schema registry with Confluent's routes, whose state is the compacted topic `_schemas`.

`app` answers requests. What a request reads comes from `state`, which `following` keeps up with the topic; a request that changes
something decides in `registering`, `deleting` or `settings`, and `writing` appends the records. Records are Confluent's (`stored_records`),
so a Confluent registry opens the topic, and this one opens Confluent's.

Any number of registries may serve one cluster. Each answers reads itself, and writes too: before it writes it takes the topic's claim,
which fences every other one (`schemas_log`).

The room is a client of the cluster: it imports nothing of the broker.
"""
