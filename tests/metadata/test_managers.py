"""The door to the managers: which requests the controller serves, and what a broker's start imports."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from barnabas.metadata.managers import manager_of
from barnabas.protocol.api_keys import ApiKey, api

SERVED = {
    ApiKey.ALTER_PARTITION,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.UNREGISTER_CONTROLLER,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
}


def test_what_the_controller_serves() -> None:
    assert {key for key in ApiKey if manager_of(key) is not None} == SERVED


@pytest.mark.parametrize("key", sorted(SERVED), ids=lambda key: key.name)
def test_a_manager_takes_its_own_apis_request(key: ApiKey) -> None:
    manager = manager_of(key)
    assert manager is not None
    _, request = inspect.signature(manager).parameters.values()
    # `_Request` is one module's short name for its request.
    named = manager.__globals__.get(request.annotation)
    expected = api(key).request_class
    assert named is expected or request.annotation == f"messages.{expected.NAME}"


def test_a_controller_that_has_answered_no_client_has_imported_no_managers_but_the_brokers() -> None:
    script = (
        "import sys, barnabas.metadata.quorum_controller;"
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('barnabas.metadata.')))"
    )
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {"cluster_control", "broker_fencing"} <= set(imported)
    managers = {"create_topics", "delete_topics", "create_partitions", "configuration_control", "client_quota_control"}
    managers |= {
        "scram_control",
        "elect_leaders",
        "assign_replicas",
        "reassignments",
        "feature_control",
        "describe_quorum",
    }
    assert not managers & set(imported)
