"""Users of SCRAM and ACLs of an embedded broker or cluster, written into its metadata as a client would write them.

The requests go to the active controller in the node's own name.
"""

from __future__ import annotations

import asyncio
import base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.api.serving.context import Controller
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import error_for
from barnabas.protocol.messages import AlterUserScramCredentialsRequest, CreateAclsRequest
from barnabas.security.acls import AclBinding
from barnabas.security.sasl.scram_keys import MIN_ITERATIONS

if TYPE_CHECKING:
    from barnabas.embedded.development_security import DevelopmentSecurity

__all__ = ["UsersAndAcls"]

_LOOK_S = 0.005


class UsersAndAcls(NamedTuple):
    """The credentials and the ACLs.

    Attributes:
        credentials: user, number of the mechanism, salt, salted password.
    """

    credentials: Sequence[tuple[str, int, bytes, bytes]]
    acls: Sequence[AclBinding]

    def __repr__(self) -> str:
        return f"<UsersAndAcls credentials={len(self.credentials)} acls={len(self.acls)}>"

    @classmethod
    def of(cls, security: DevelopmentSecurity) -> UsersAndAcls:
        return cls(security.scram_credentials(), security.acls or ())

    def to_json(self) -> list[Any]:
        """Return the value as `from_json` reads it."""
        credentials = [[user, number, *map(_text, secrets)] for user, number, *secrets in self.credentials]
        return [credentials, [list(acl) for acl in self.acls]]

    @classmethod
    def from_json(cls, found: Sequence[Any]) -> UsersAndAcls:
        credentials, acls = found
        return cls(
            [
                (user, number, base64.b64decode(salt), base64.b64decode(salted))
                for user, number, salt, salted in credentials
            ],
            [AclBinding(*acl) for acl in acls],
        )

    async def make(self, controller: Controller, image: Callable[[], MetadataImage]) -> None:
        """Write them; return when this node knows them.

        Raises:
            KafkaError: the controller rejects one.
        """
        by_mechanism = defaultdict(list)
        for user, mechanism, salt, salted in self.credentials:
            by_mechanism[mechanism].append(_upsertion(user, mechanism, salt, salted))
        # A request may name a user only once.
        for upsertions in by_mechanism.values():
            changed = await controller.handle(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest(upsertions=upsertions)
            )
            _check(changed.results)
        if self.acls:
            created = await controller.handle(
                ApiKey.CREATE_ACLS,
                CreateAclsRequest.MAX_VERSION,
                CreateAclsRequest(creations=list(map(_creation, self.acls))),
            )
            _check(created.results)
        while not self._are_in(image()):
            await asyncio.sleep(_LOOK_S)

    def _are_in(self, image: MetadataImage) -> bool:
        known = image.scram.credentials
        return all((user, mechanism) in known for user, mechanism, *_ in self.credentials) and set(self.acls) <= set(
            image.acls.entries.values()
        )


def _upsertion(
    user: str, mechanism: int, salt: bytes, salted: bytes
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=mechanism, iterations=MIN_ITERATIONS, salt=salt, salted_password=salted
    )


def _creation(acl: AclBinding) -> CreateAclsRequest.AclCreation:
    values = acl._asdict()
    values["resource_pattern_type"] = values.pop("pattern_type")
    return CreateAclsRequest.AclCreation(**values)


def _check(results: Iterable[Any]) -> None:
    for result in results:
        if result.error_code:
            raise error_for(result.error_code, result.error_message)


def _text(secret: bytes) -> str:
    return base64.b64encode(secret).decode()
