"""Reads a cluster for `barnabas adopt check`; changes nothing.

A question that a broker does not answer, or for which the user has no right, leaves its part of the state empty and is named in
`unseen`. Only if no broker answers at all there is no state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from barnabas.adopt.cluster_state import ClusterState, Problem, Unseen
from barnabas.cli.cluster_status import status_of
from barnabas.client.admin import Admin, ConfigEntry, ConfigResource, PartitionDescription, ResourceType, TopicPartition
from barnabas.client.configs import OWN_SOURCES
from barnabas.client.program import Program
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.acls import AclBinding, AclFilter

__all__ = ["SECRET_OF_TOKENS", "read_cluster"]

KeyT = TypeVar("KeyT")
ResultT = TypeVar("ResultT")

SECRET_OF_TOKENS = "delegation.token.secret.key"
_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


def read_cluster(admin: Admin, now_ms: int) -> ClusterState:
    """Return the state of a cluster.

    Args:
        now_ms: the wall clock, epoch milliseconds.

    Raises:
        KafkaError: no broker answers.
    """
    found = admin.describe_cluster()
    brokers = tuple(node.id for node in found.brokers)
    asked = _Asked()
    partitions: dict[TopicPartition, PartitionDescription] = asked("partitions", admin.describe_partitions) or {}
    status = asked("the health of the cluster", lambda: status_of(admin, partitions).data)
    quorum = asked("the quorum", admin.describe_quorum)
    topics = asked("topics", lambda: admin.list_topics(internal=True)) or []
    settings = _settings(admin, asked, ResourceType.BROKER, list(map(str, brokers)))
    groups = asked("groups", admin.list_groups) or []
    # Only a group of this type has its assignor from the broker.
    named = [each.group_id for each in groups if each.type.lower() == "consumer"]
    transactions = asked("transactions", admin.list_transactions) or []
    open_ids = [each.transactional_id for each in transactions if each.state in _OPEN]
    return ClusterState(
        cluster_id=found.cluster_id,
        brokers=brokers,
        fenced=tuple(node.id for node in found.fenced),
        barnabas=_barnabas(admin),
        voters=() if quorum is None else tuple(each.id for each in quorum.voters),
        problems=None if status is None else [Problem(**each) for each in status["problems"]],
        moving=0 if status is None else status["moving"],
        partitions=partitions,
        topics=topics,
        features=asked.each("features of broker", admin.describe_features),
        broker_settings={int(name): entries for name, entries in settings.items()},
        topic_settings=_settings(admin, asked, ResourceType.TOPIC, [each.name for each in topics]),
        group_settings=_named_settings(admin, asked, ResourceType.GROUP),
        client_metrics=_named_settings(admin, asked, ResourceType.CLIENT_METRICS),
        log_dirs=asked.each("directories of broker", lambda: admin.describe_log_dirs(brokers)),
        groups=groups,
        group_descriptions=asked.each("group", lambda: admin.describe_groups(named)) if named else {},
        transactions=transactions,
        open_transactions=asked.each("transaction", lambda: admin.describe_transactions(open_ids)) if open_ids else {},
        quotas=asked("quotas", admin.list_quotas) or [],
        users=asked("users of SCRAM", admin.list_users) or [],
        acls=asked("access control lists", lambda: _acls(admin)),
        tokens=asked("delegation tokens", lambda: len(admin.describe_tokens())) if _has_tokens(settings) else None,
        now_ms=now_ms,
        unseen=asked.unseen,
    )


class _Asked:
    """Asks, and notes what was not answered."""

    def __init__(self) -> None:
        self.unseen: list[Unseen] = []

    def __call__(self, what: str, ask: Callable[[], ResultT]) -> ResultT | None:
        """Return the answer; None after an error."""
        try:
            return ask()
        except KafkaError as error:
            self.unseen.append(Unseen(what, error.message))
            return None

    def each(self, what: str, ask: Callable[[], Mapping[KeyT, ResultT | KafkaError]]) -> dict[KeyT, ResultT]:
        """Return the answers about several things; an error of one leaves it out."""
        answers: dict[KeyT, ResultT] = {}
        for key, answer in (self(f"{what}s", ask) or {}).items():
            if isinstance(answer, KafkaError):
                self.unseen.append(Unseen(f"{what} {key}", answer.message))
            else:
                answers[key] = answer
        return answers


def _settings(admin: Admin, asked: _Asked, kind: ResourceType, names: list[str]) -> dict[str, list[ConfigEntry]]:
    """Return the settings of brokers, all of them, or those that were set for each topic, group or metrics subscription."""
    if not names:
        return {}
    resources = [ConfigResource(kind, name) for name in names]
    noun = kind.name.lower().replace("_", " ")
    found = asked.each(
        f"settings of {noun}",
        lambda: {resource.name: each for resource, each in admin.describe_configs(resources).items()},
    )
    if kind == ResourceType.BROKER:
        return found
    own = OWN_SOURCES[kind]
    return {
        name: [each for each in entries if each.source == own or each.name == MIN_ISR]
        for name, entries in found.items()
    }


def _named_settings(admin: Admin, asked: _Asked, kind: ResourceType) -> dict[str, list[ConfigEntry]]:
    noun = kind.name.lower().replace("_", " ")
    names = asked(f"{noun}s with settings", lambda: admin.list_config_resources(kind)) or []
    return _settings(admin, asked, kind, names)


def _barnabas(admin: Admin) -> frozenset[int]:
    return frozenset(node for node, each in admin.describe_programs().items() if each.program == Program.BARNABAS)


def _acls(admin: Admin) -> Sequence[AclBinding] | None:
    """Return all rules; None if the cluster has no authorizer."""
    try:
        return admin.list_acls(AclFilter())
    except KafkaError as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        return None


def _has_tokens(settings: Mapping[str, Sequence[ConfigEntry]]) -> bool:
    entries = [each for found in settings.values() for each in found if each.name == SECRET_OF_TOKENS]
    return any(not each.is_default for each in entries)
