"""Which manager answers which request: the only entry to the managers, and the only place that imports them late.

A manager takes a `ControllerView` and a request and returns a `ControllerResult`. A broker that starts needs those of
`cluster_control` and `broker_fencing` alone. Each of the others is imported by the first request that needs it, which keeps some ten
milliseconds of imports and message classes out of every start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from barnabas.metadata import broker_fencing, cluster_control
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.protocol.api_keys import ApiKey

Manager = Callable[[ControllerView, Any], ControllerResult[Any]]

_OF_SECURITY = (
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
)
"""The APIs of `security_managers`."""


@cache
def manager_of(api_key: int) -> Manager | None:
    """Return the function that answers an API's requests; None if the controller does not serve the API."""
    match api_key:
        case ApiKey.BROKER_REGISTRATION:
            return cluster_control.register_broker
        case ApiKey.BROKER_HEARTBEAT:
            return broker_fencing.heartbeat
        case ApiKey.UNREGISTER_BROKER:
            return cluster_control.unregister_broker
        case ApiKey.CONTROLLER_REGISTRATION:
            return cluster_control.register_controller
        case ApiKey.UNREGISTER_CONTROLLER:
            return cluster_control.unregister_controller
        case ApiKey.ALTER_PARTITION:
            from barnabas.metadata.alter_partition import alter_partition

            return alter_partition
        case ApiKey.ASSIGN_REPLICAS_TO_DIRS:
            from barnabas.metadata.assign_replicas import assign_replicas_to_dirs

            return assign_replicas_to_dirs
        case ApiKey.CREATE_TOPICS:
            from barnabas.metadata.create_topics import create_topics

            return create_topics
        case ApiKey.DELETE_TOPICS:
            from barnabas.metadata.delete_topics import delete_topics

            return delete_topics
        case ApiKey.CREATE_PARTITIONS:
            from barnabas.metadata.create_partitions import create_partitions

            return create_partitions
        case ApiKey.ALTER_CONFIGS:
            from barnabas.metadata.configuration_control import alter_configs

            return alter_configs
        case ApiKey.INCREMENTAL_ALTER_CONFIGS:
            from barnabas.metadata.configuration_control import incremental_alter

            return incremental_alter
        case ApiKey.ALTER_CLIENT_QUOTAS:
            from barnabas.metadata.client_quota_control import alter_client_quotas

            return alter_client_quotas
        case ApiKey.ELECT_LEADERS:
            from barnabas.metadata.elect_leaders import elect_leaders

            return elect_leaders
        case ApiKey.ALTER_PARTITION_REASSIGNMENTS | ApiKey.LIST_PARTITION_REASSIGNMENTS:
            from barnabas.metadata import reassignments

            is_list = api_key == ApiKey.LIST_PARTITION_REASSIGNMENTS
            return reassignments.list_reassignments if is_list else reassignments.alter_reassignments
        case ApiKey.UPDATE_FEATURES:
            from barnabas.metadata.feature_control import update_features

            return update_features
        case ApiKey.DESCRIBE_QUORUM:
            from barnabas.metadata.describe_quorum import describe_quorum

            return describe_quorum
        case ApiKey.ALLOCATE_PRODUCER_IDS:
            from barnabas.metadata.producer_ids_control import allocate_producer_ids

            return allocate_producer_ids
        case _ if api_key in _OF_SECURITY:
            from barnabas.metadata.security_managers import SECURITY_MANAGERS

            return SECURITY_MANAGERS[api_key]
        case _:
            return None
