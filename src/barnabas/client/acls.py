"""Access control lists of a cluster, Apache Kafka or barnabas.

Sources: DescribeAcls (29), CreateAcls (30), DeleteAcls (31); KIP-140, KIP-290.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.outcome import outcome_of
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for
from barnabas.security.acls import AclBinding, AclFilter


def list_acls(cluster: Cluster, wanted: AclFilter) -> list[AclBinding]:
    """Return the ACLs that the filter selects, sorted.

    Raises:
        KafkaError: SECURITY_DISABLED if the cluster has no authorizer, CLUSTER_AUTHORIZATION_FAILED without the right to DESCRIBE
            the cluster.
    """

    def ask() -> list[AclBinding]:
        response = cluster.any_connection().request(messages.DescribeAclsRequest(**_fields(wanted)))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return sorted(
            AclBinding(
                each.resource_type,
                each.resource_name,
                each.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for each in response.resources
            for acl in each.acls
        )

    return cluster.retry(ask)


def create_acls(cluster: Cluster, acls: Sequence[AclBinding]) -> list[KafkaError | None]:
    """Create ACLs; return the error of each, None if it stands now."""
    creation = messages.CreateAclsRequest.AclCreation
    creations = []
    for acl in acls:
        values = acl._asdict()
        values["resource_pattern_type"] = values.pop("pattern_type")
        creations.append(creation(**values))
    request = messages.CreateAclsRequest(creations=creations)
    response = cluster.retry(lambda: cluster.any_connection().request(request))
    return [outcome_of(each.error_code, each.error_message) for each in response.results]


def delete_acls(cluster: Cluster, wanted: AclFilter) -> list[AclBinding]:
    """Delete the ACLs that the filter selects, and return them, sorted.

    Raises:
        KafkaError: none is deleted, or it is not known whether they are.
    """
    request_class = messages.DeleteAclsRequest
    request = request_class(filters=[request_class.DeleteAclsFilter(**_fields(wanted))])
    (answer,) = cluster.retry(lambda: cluster.any_connection().request(request)).filter_results
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message)
    return sorted(
        AclBinding(
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for acl in answer.matching_acls
    )


def _fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }
