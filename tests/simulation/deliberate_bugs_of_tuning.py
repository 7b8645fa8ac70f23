"""Deliberate bugs for settings, partition counts, quotas and feature levels. They stand in one table with `deliberate_bugs_of_clusters`."""

from __future__ import annotations

from typing import Any

from barnabas.metadata.client_quotas_image import ClientQuotasImage
from barnabas.metadata.controller_request import ControllerRequest
from barnabas.metadata.features_image import FeaturesDelta, FeaturesImage
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.net.connection import Connection
from barnabas.protocol.messages import (
    AlterClientQuotasResponse,
    CreatePartitionsResponse,
    IncrementalAlterConfigsResponse,
    UpdateFeaturesResponse,
)
from barnabas.quota.client_quotas import ClientQuotas
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import Switch, replaced

_FINISH: Any = vars(QuorumController)["_finish"]
_APPLY = FeaturesDelta.apply


def _answering_alone(kind: type) -> Switch:
    """Answer one kind of request before its change is committed."""

    def finish(self: QuorumController, request: ControllerRequest, change: Any) -> None:
        _FINISH(self, request, change)
        if isinstance(change.result.response, kind) and not request.future.done():
            request.future.set_result(change.result.response)

    return replaced(QuorumController, "_finish", finish)


def set_alone() -> Switch:
    """The controller answers a change of settings before it is committed. Caught by linear_settings, when it is lost."""
    return _answering_alone(IncrementalAlterConfigsResponse)


def grow_alone() -> Switch:
    """The controller answers CreatePartitions before it is committed. Caught by linear_settings, when it is lost."""
    return _answering_alone(CreatePartitionsResponse)


def limit_alone() -> Switch:
    """The controller answers a change of quotas before it is committed. Caught by progress: the tuner waits for it."""
    return _answering_alone(AlterClientQuotasResponse)


def raise_alone() -> Switch:
    """The controller answers a change of feature levels before it is committed. Caught by progress: the tuner waits for it."""
    return _answering_alone(UpdateFeaturesResponse)


def forget_quotas() -> Switch:
    """A snapshot of the metadata has no quotas. Caught by linear_settings, when a node starts from it."""
    return replaced(ClientQuotasImage, "records", lambda self: iter(()))


def limit_nobody() -> Switch:
    """A broker applies no quota. Caught by linear_settings."""
    return replaced(ClientQuotas, "apply", lambda self, changed: None)


def keep_the_highest_level() -> Switch:
    """A feature level that was lowered stays on brokers. Caught by linear_settings."""

    def apply(self: FeaturesDelta) -> FeaturesImage:
        self.changed = {name: max(level, self.image.level(name)) for name, level in self.changed.items()}
        return _APPLY(self)

    return replaced(FeaturesDelta, "apply", apply)


def serve_who_must_wait() -> Switch:
    """A broker tells a client to wait, and serves it nevertheless. Caught by linear_settings."""
    return replaced(Connection, "_rest_for", lambda self, throttle_ms: None)


BUGS: dict[str, Bug] = {
    "set_alone": Bug(set_alone, 12, "tunes_lone_controllers"),
    "grow_alone": Bug(grow_alone, 12, "tunes_lone_controllers"),
    "limit_alone": Bug(limit_alone, 12, "tunes_lone_controllers"),
    "raise_alone": Bug(raise_alone, 12, "tunes_lone_controllers"),
    "forget_quotas": Bug(forget_quotas, 30, "is_tuned"),
    "limit_nobody": Bug(limit_nobody, 6, "is_tuned"),
    "keep_the_highest_level": Bug(keep_the_highest_level, 6, "is_tuned"),
    "serve_who_must_wait": Bug(serve_who_must_wait, 24, "is_tuned"),
}
