"""UpdateFeatures: raise or lower the levels that the cluster has finalized.

- A level must be supported by this controller, by every registered broker, and by every other controller. A voter that has not
  registered counts as one that does not support it.
- The upgrade type must allow the change: 1 an upgrade, 2 a safe downgrade, 3 an unsafe one.
- metadata.version can be lowered only if no level on the way changed a format, so that no metadata is lost.
- Either all updates of a request are made or none: the first error becomes the error of the whole response, without results.
  Versions 0 and 1 list results when all updates were made (KIP-1022).
- kraft.version is the quorum's: it writes its own records (`raft.kraft_version_upgrade`), and cannot be lowered.
- Eligible leader replicas need metadata.version 4.0-IV1 and one min.insync.replicas for the cluster: turning them on sets it where it is
  not set, and removes it from single brokers (KIP-966).

Sources: KIP-584, KIP-778, KIP-1022; Kafka's `FeatureControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from barnabas.metadata.configuration_control import elr_safety_records
from barnabas.metadata.controller_view import NO_ERROR, ApiError, ControllerResult, ControllerView
from barnabas.metadata.features_image import ELR_FEATURE, KRAFT_VERSION, METADATA_VERSION
from barnabas.metadata.metadata_version import CONTROLLER_REGISTRATION_SINCE, DID_METADATA_CHANGE, supported_features
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.raft.kraft_version_upgrade import objection
from barnabas.raft.leader import Leader

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
# 4.0-IV1, the first level whose records have eligible leader replicas.
ELR_METADATA_VERSION = 23


def update_features(
    view: ControllerView, request: messages.UpdateFeaturesRequest
) -> ControllerResult[messages.UpdateFeaturesResponse]:
    """Answer one UpdateFeatures request."""
    response = messages.UpdateFeaturesResponse(error_message=None)
    records: list[MetadataRecord] = []
    refusal, upgrades_kraft_version = NO_ERROR, False
    for update in request.feature_updates:
        kind = update.upgrade_type
        if view.version == 0:
            kind = SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        name, level = update.feature, update.max_version_level
        refusal = _check(view, name, level, kind)
        if refusal.code is ErrorCode.NONE and name == ELR_FEATURE and level > 0:
            refusal = _check_elr(view, request, level)
        if refusal.code is not ErrorCode.NONE:
            break
        if name == KRAFT_VERSION:
            upgrades_kraft_version = level != view.quorum.kraft_version and not request.validate_only
        elif level != view.image.features.level(name):
            records.append(messages.FeatureLevelRecord(name=name, feature_level=level))
    if refusal.code is not ErrorCode.NONE:
        records, upgrades_kraft_version = [], False
        response.error_code = refusal.code
        response.error_message = (
            f"The update failed for all features since the following feature had an error: {refusal.message}"
        )
    elif view.version <= 1:
        response.results = [_taken(update.feature) for update in request.feature_updates]
    # metadata.version first, for it decides how the others are written.
    records.sort(key=lambda record: getattr(record, "name", "") != METADATA_VERSION)
    if any(getattr(record, "name", "") == ELR_FEATURE and getattr(record, "feature_level", 0) for record in records):
        records = elr_safety_records(view) + records
    if upgrades_kraft_version:
        # The response waits until this record is committed. The quorum's control records come before it.
        records.append(messages.NoOpRecord())
    return ControllerResult(
        response, [] if request.validate_only else records, upgrades_kraft_version=upgrades_kraft_version
    )


def _taken(name: str) -> messages.UpdateFeaturesResponse.UpdatableFeatureResult:
    code = ErrorCode.NONE
    return messages.UpdateFeaturesResponse.UpdatableFeatureResult(
        feature=name, error_code=code, error_message=code.name
    )


def _check(view: ControllerView, name: str, level: int, kind: int) -> ApiError:
    refused = ErrorCode.INVALID_UPDATE_VERSION
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return ApiError(refused, "The controller does not support the given upgrade type.")
    current = view.quorum.kraft_version if name == KRAFT_VERSION else view.image.features.level(name)
    invalid = f"Invalid update version {level} for feature {name}. "
    if level < 0:
        return ApiError(refused, invalid + "A feature version cannot be less than 0.")
    supported = supported_features().get(name)
    if supported is None:
        why = f"Local controller {view.settings.node_id} does not support this feature."
        return ApiError(refused, invalid + why)
    if level != 0 and not supported.min <= level <= supported.max:
        why = f"Local controller {view.settings.node_id} only supports versions {supported.min}-{supported.max}"
        return ApiError(refused, invalid + why)
    for why in chain(_broker_objections(view, name, level), _controller_objections(view, name, level)):
        return ApiError(refused, invalid + why)
    if level < current:
        if kind == UPGRADE:
            why = "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            return ApiError(refused, invalid + why + "unsafe downgrade.")
        if name == METADATA_VERSION:
            return _check_metadata_downgrade(current, level, kind)
    elif level > current and kind != UPGRADE:
        return ApiError(refused, invalid + "Can't downgrade to a newer version.")
    if name == KRAFT_VERSION and level != current:
        return _check_kraft_version(view, level, current)
    return NO_ERROR


def _check_kraft_version(view: ControllerView, level: int, current: int) -> ApiError:
    refused, state = ErrorCode.INVALID_UPDATE_VERSION, view.quorum.quorum.state
    if level < current:
        invalid = f"Invalid update version {level} for feature {KRAFT_VERSION}. "
        return ApiError(refused, invalid + "Can't downgrade the version of this feature.")
    assert isinstance(state, Leader), "only the active controller answers"
    why = objection(state, level)
    return NO_ERROR if why is None else ApiError(refused, why)


def _check_elr(view: ControllerView, request: messages.UpdateFeaturesRequest, level: int) -> ApiError:
    asked = {update.feature: update.max_version_level for update in request.feature_updates}
    if asked.get(METADATA_VERSION, view.image.features.level(METADATA_VERSION)) >= ELR_METADATA_VERSION:
        return NO_ERROR
    why = f"could not be set to {level} because it depends on {METADATA_VERSION} level {ELR_METADATA_VERSION}"
    invalid = f"Invalid update version {level} for feature {ELR_FEATURE}. "
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{invalid}{ELR_FEATURE} {why}")


def _broker_objections(view: ControllerView, name: str, level: int) -> Iterator[str]:
    for broker in view.image.cluster.brokers.values():
        offered = broker.supported_features.get(name)
        if level == 0:
            continue
        if offered is None:
            yield f"Broker {broker.id} does not support this feature."
        elif not offered.min <= level <= offered.max:
            yield f"Broker {broker.id} only supports versions {offered.min}-{offered.max}"


def _controller_objections(view: ControllerView, name: str, level: int) -> Iterator[str]:
    image, own = view.image, view.settings.node_id
    if (image.features.metadata_version or 0) < CONTROLLER_REGISTRATION_SINCE:
        return
    for controller in image.cluster.controllers.values():
        offered = controller.supported_features.get(name)
        if controller.id == own or level == 0:
            continue
        if offered is None:
            yield f"Controller {controller.id} does not support this feature."
        elif not offered.min <= level <= offered.max:
            yield f"Controller {controller.id} only supports versions {offered.min}-{offered.max}"
    for voter in view.quorum.voters.ids():
        if voter != own and voter not in image.cluster.controllers:
            yield f"controller {voter} has not registered, and may not support this feature"


def _check_metadata_downgrade(current: int, level: int, kind: int) -> ApiError:
    if kind == UNSAFE_DOWNGRADE:
        why = f"Invalid metadata.version {level}. Unsafe metadata downgrade is not supported in this version."
        return ApiError(ErrorCode.INVALID_UPDATE_VERSION, why)
    if any(lost in DID_METADATA_CHANGE for lost in range(level + 1, current + 1)):
        why = "Refusing to perform the requested downgrade because it might delete metadata information."
        return ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid metadata.version {level}. {why}")
    return NO_ERROR
