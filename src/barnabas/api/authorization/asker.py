"""Who asks: the principal and the address of a request, its questions to the authorizer, and the audit of the answers.

- A decision is kept with the connection until an access control list changes (`StandardAuthorizer.version`), so that a Produce or a Fetch
  pays a look into a dict for each topic.
- Before the lists are loaded only a super user gets an answer, the others get UNKNOWN_SERVER_ERROR, as in Kafka, which has no code for it.
- Each answer is a line on the logger `kafka.authorizer.logger`, as Kafka writes it: what was denied at INFO, what was allowed at DEBUG, and
  at the level below (5, Kafka's TRACE) what was asked only to choose what a response tells.

Source: Kafka's `AuthHelper`, `StandardAuthorizerData.logAuditMessage`, `AuthorizerNotReadyException`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.authorization.audit import AUDIT
from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.security.authorizer import AuthorizerNotReady
from barnabas.security.hosts import java_address
from barnabas.turns import RECORD, pace
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.security.authorizer import StandardAuthorizer
    from barnabas.security.principal import Principal

__all__ = ["DENIED", "Asker", "Decisions"]

TRACE = 5
KEPT = 10_000
"""Decisions that a connection keeps; a client that asks for more topics than that begins again."""

DENIED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of a denied question about a resource."""

_TITLES = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}

E = TypeVar("E")


class Decisions:
    """The decisions about one principal at one address.

    Attributes:
        version, principal: of the authorizer, and who it decided about, when they were made.
    """

    __slots__ = ("known", "principal", "version")

    def __init__(self) -> None:
        self.version = -1
        self.principal: Principal | None = None
        self.known: dict[tuple[AclOperation, ResourceType, str], bool] = {}

    def __repr__(self) -> str:
        return f"<Decisions version={self.version} known={len(self.known)}>"


class Asker:
    """The sender of one request.

    Args:
        host: its address.
        decisions: kept with its connection.
        image: returns the current metadata, for the names of topic ids.
    """

    __slots__ = ("_authorizer", "_decisions", "_host", "api_key", "image", "principal", "version")

    def __init__(
        self,
        authorizer: StandardAuthorizer,
        principal: Principal,
        host: str,
        decisions: Decisions,
        *,
        api_key: int,
        version: int,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._authorizer = authorizer
        self.principal = principal
        self._host = java_address(host)
        self._decisions = decisions
        self.api_key = api_key
        self.version = version
        self.image = image

    def __repr__(self) -> str:
        return f"<Asker {self.principal} api_key={self.api_key}>"

    # The questions

    def decides(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether it may do that, without a line of audit.

        Raises:
            KafkaError: UNKNOWN_SERVER_ERROR, the lists are not loaded yet.
        """
        kept, authorizer = self._decisions, self._authorizer
        if kept.version != authorizer.version or kept.principal is not self.principal or len(kept.known) >= KEPT:
            kept.known = {}
            kept.version, kept.principal = authorizer.version, self.principal
        question = (operation, kind, name)
        answer = kept.known.get(question)
        if answer is None:
            try:
                answer = authorizer.is_allowed(self.principal, self._host, operation, kind, name)
            except AuthorizerNotReady:
                raise _not_ready() from None
            kept.known[question] = answer
        return answer

    def may(
        self, operation: AclOperation, kind: ResourceType, name: str, *, is_loud: bool = True, times: int = 1
    ) -> bool:
        """Return whether it may do that.

        Args:
            is_loud: a denial is audited at INFO.
            times: how often the request names the resource.
        """
        is_allowed = self.decides(operation, kind, name)
        level = logging.DEBUG if is_allowed else logging.INFO if is_loud else TRACE
        if AUDIT.isEnabledFor(level):
            self._write(level, operation, kind, name, is_allowed=is_allowed, times=times)
        return is_allowed

    def may_cluster(self, operation: AclOperation, *, is_loud: bool = True) -> bool:
        """Return whether it may do that to the cluster."""
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, is_loud=is_loud)

    def may_some(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether it may do that to any resource of a type (`Authorizer.authorizeByResourceType`)."""
        try:
            return self._authorizer.is_allowed_by_type(self.principal, self._host, operation, kind)
        except AuthorizerNotReady:
            raise _not_ready() from None

    def need(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        """Refuse the whole request unless it may do that.

        Raises:
            KafkaError: the resource type's own code.
        """
        if not self.may(operation, kind, name):
            raise KafkaError(DENIED[kind])

    def need_cluster(self, operation: AclOperation) -> None:
        """Refuse the whole request unless it may do that to the cluster: KafkaError CLUSTER_AUTHORIZATION_FAILED."""
        self.need(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def bits(self, operations: Iterable[AclOperation], kind: ResourceType, name: str) -> int:
        """Return the operations that it may do, bit n for operation n."""
        found = 0
        for operation in operations:
            is_allowed = self.decides(operation, kind, name)
            if is_allowed:
                found |= 1 << operation
            if AUDIT.isEnabledFor(TRACE):
                self._write(TRACE, operation, kind, name, is_allowed=is_allowed, times=1)
        return found

    # Many elements

    async def split(
        self,
        elements: Iterable[E],
        operation: AclOperation,
        kind: ResourceType,
        name_of: Callable[[E], str | None],
        *,
        is_loud: bool = True,
    ) -> tuple[list[E], list[E]]:
        """Return the elements that it may do that to, and the others; one without a name is allowed."""
        allowed: list[E] = []
        denied: list[E] = []
        named: list[str] = []
        for element in elements:
            await pace(RECORD)
            name = name_of(element)
            if name is None:
                allowed.append(element)
                continue
            named.append(name)
            (allowed if self.decides(operation, kind, name) else denied).append(element)
        if AUDIT.isEnabledFor(logging.INFO if denied and is_loud else logging.DEBUG):
            for name, times in Counter(named).items():
                await pace(RECORD)
                self.may(operation, kind, name, is_loud=is_loud, times=times)
        return allowed, denied

    def split_now(
        self,
        elements: Iterable[E],
        operation: AclOperation,
        kind: ResourceType,
        name_of: Callable[[E], str | None],
    ) -> tuple[list[E], list[E]]:
        """Do as `split`, and give the loop no turn: the elements have views of the connection's buffer."""
        allowed: list[E] = []
        denied: list[E] = []
        for element in elements:
            name = name_of(element)
            is_allowed = name is None or self.decides(operation, kind, name)
            (allowed if is_allowed else denied).append(element)
        if AUDIT.isEnabledFor(logging.INFO if denied else logging.DEBUG):
            for name, times in Counter(map(name_of, [*denied, *allowed])).items():
                if name is not None:
                    self.may(operation, kind, name, times=times)
        return allowed, denied

    async def may_all(self, names: Sequence[str], operation: AclOperation, kind: ResourceType) -> bool:
        """Return whether it may do that to every one of these."""
        _, denied = await self.split(dict.fromkeys(names), operation, kind, str)
        return not denied

    def _write(
        self, level: int, operation: AclOperation, kind: ResourceType, name: str, *, is_allowed: bool, times: int
    ) -> None:
        decision = self._authorizer.explain(self.principal, self._host, operation, kind, name)
        AUDIT.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s with "
            "resourceRefCount = %d based on rule %s",
            printable(str(self.principal)),
            "Allowed" if is_allowed else "Denied",
            operation.name,
            printable(self._host),
            _TITLES[kind],
            printable(name),
            api(self.api_key).name,
            times,
            printable(decision.rule),
        )


def _not_ready() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The access control lists are not loaded yet.")
