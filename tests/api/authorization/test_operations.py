"""The operations that are reported as bits, as Apache Kafka 4.4 has them for a super user."""

from __future__ import annotations

from barnabas.api.authorization.operations import CLUSTER_OPERATIONS, GROUP_OPERATIONS, TOPIC_OPERATIONS
from barnabas.api.serving import authorized_operations as without_authorizer


def test_a_super_user_has_the_bits_that_everybody_has_without_an_authorizer() -> None:
    for operations, bits in (
        (TOPIC_OPERATIONS, without_authorizer.TOPIC_OPERATIONS),
        (GROUP_OPERATIONS, without_authorizer.GROUP_OPERATIONS),
        (CLUSTER_OPERATIONS, without_authorizer.CLUSTER_OPERATIONS),
    ):
        assert sum(1 << operation for operation in operations) == bits
