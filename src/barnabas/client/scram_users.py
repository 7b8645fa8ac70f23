"""Users of SCRAM: what is listed of them, and how their passwords are set. A broker gets the salted password, never the password.

Sources: DescribeUserScramCredentials (50), AlterUserScramCredentials (51); KIP-554.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.outcome import outcome_of
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for
from barnabas.security.sasl.scram_keys import ScramMechanism, salted_password

_Altered = messages.AlterUserScramCredentialsRequest


class ScramUser(NamedTuple):
    """A user with a password for one mechanism.

    Attributes:
        mechanism: such as `SCRAM-SHA-256`.
    """

    name: str
    mechanism: str
    iterations: int


def list_users(cluster: Cluster) -> list[ScramUser]:
    """Return the users of SCRAM by name, a row for each mechanism."""

    def ask() -> list[ScramUser]:
        request = messages.DescribeUserScramCredentialsRequest(users=None)
        response = cluster.any_connection().request(request)
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        return [
            ScramUser(result.user, _label(info.mechanism), info.iterations)
            for result in response.results
            for info in result.credential_infos
        ]

    return sorted(cluster.retry(ask))


def set_password(
    cluster: Cluster, user: str, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> KafkaError | None:
    """Set a user's password for one mechanism; return the error, if there is one."""
    upsertion = _Altered.ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.number,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, password, salt, iterations),
    )
    return _alter(cluster, _Altered(upsertions=[upsertion]))


def delete_password(cluster: Cluster, user: str, mechanism: ScramMechanism) -> KafkaError | None:
    """Delete a user's password for one mechanism; return the error, if there is one."""
    deletion = _Altered.ScramCredentialDeletion(name=user, mechanism=mechanism.number)
    return _alter(cluster, _Altered(deletions=[deletion]))


def _alter(cluster: Cluster, request: messages.AlterUserScramCredentialsRequest) -> KafkaError | None:
    # A request has one change for a user, so each mechanism has a request of its own.
    (result,) = cluster.retry(lambda: cluster.any_connection().request(request)).results
    return outcome_of(result.error_code, result.error_message)


def _label(number: int) -> str:
    return next((one.label for one in ScramMechanism if one.number == number), f"mechanism {number}")
