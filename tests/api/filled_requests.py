"""A request of any API with a value in every field: each array has one element, each name means something on the node."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api_keys import api
from barnabas.protocol.schema import FieldSpec, StructSpec

Values = dict[str, Any]

ALWAYS: Values = {
    "active_tasks": [],
    "allow_auto_topic_creation": True,
    "assignment": b"part",
    "compression_type": 0,
    "coordinator_epoch": 0,
    "coordinator_keys": ["g"],
    "count": 4,
    "current_leader_epoch": -1,
    "cursor": None,
    "election_type": 1,
    "entity_name": "u",
    "entity_type": "user",
    "generation_id": 1,
    "generation_id_or_member_epoch": -1,
    "group_id": "g",
    "group_ids": ["g"],
    "group_instance_id": None,
    "groups": ["g"],
    "groups_names": ["g"],
    "instance_id": None,
    "is_renew_ack": False,
    "iterations": 4096,
    "leader_epoch": 0,
    "max_bytes": 1 << 20,
    "max_records": 10,
    "max_wait_ms": 500,
    "metadata": b"\0\0\0\0\0\1\0\1t\0\0\0\0",
    "min_bytes": 1,
    "name": "t",
    "num_partitions": 1,
    "operation": 3,
    "partition": 0,
    "partition_indexes": [0],
    "partition_max_bytes": 1 << 20,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "process_id": "process",
    "producer_epoch": 0,
    "protocol_name": "range",
    "protocol_type": "consumer",
    "rack_id": None,
    "rebalance_timeout_ms": 10_000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_name": "t",
    "resource_type": 2,
    "resource_type_filter": 2,
    "session_timeout_ms": 10_000,
    "standby_tasks": [],
    "subscribed_topic_names": ["t"],
    "subscribed_topic_regex": None,
    "timeout_ms": 30_000,
    "timestamp": -1,
    "topic": "t",
    "topic_name": "t",
    "topic_names": ["t"],
    "topic_partitions": [],
    "transaction_result": True,
    "transaction_timeout_ms": 60_000,
    "transactional_id": "tx",
    "transactional_ids": ["tx"],
    "types_filter": [],
    "user_endpoint": None,
    "v3_and_below_topics": [],
    "warmup_tasks": [],
}


def filled(key: int, version: int, values: Values) -> Any:
    """Return a request of an API.

    Args:
        values: of fields by name, in place of those in `ALWAYS`; a field named by neither gets its default or one filled element.
    """
    request_class = api(key).request_class
    spec = request_class.SPEC
    known = {**ALWAYS, **values}

    def struct(of: StructSpec, owner: Any) -> Any:
        present = [field for field in of.fields if version in field.versions]
        return owner(**{field.name: value(field) for field in present if is_given(field)})

    def is_given(field: FieldSpec) -> bool:
        return field.name in known or field.is_struct

    def value(field: FieldSpec) -> Any:
        if field.name in known and not (field.is_struct and isinstance(known[field.name], list) and known[field.name]):
            return known[field.name]
        one = struct(spec.structs[field.type], getattr(request_class, field.type))
        return [one] if field.is_array else one

    return struct(spec.root, request_class)
