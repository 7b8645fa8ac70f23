"""Raising metadata.version, and brokers that stand in the way of a level (KIP-584, KIP-778)."""

from __future__ import annotations

from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.cluster_image import BrokerRegistration, ControllerRegistration, VersionRange
from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.feature_control import update_features
from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.metadata_version import CONTROLLER_REGISTRATION_SINCE
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.leader import Leader
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from tests.metadata.controller_harness import ControllerHarness

OLD = FeaturesImage(29, {"group.version": 1})


def view(*brokers: dict[str, VersionRange], features: FeaturesImage = OLD) -> ControllerView:
    made = ControllerHarness().view(version=2)
    registered = {
        i: BrokerRegistration(i, 1, b"i" * 16, (), levels, None, False, False, ())
        for i, levels in enumerate(brokers, 1)
    }
    cluster = made.image.cluster._replace(brokers=registered)
    return made._replace(image=made.image._replace(features=features, cluster=cluster))


def update(state: ControllerView, *levels: tuple[str, int], kind: int = 1) -> tuple[list[tuple[str, int]], str]:
    """The records, and what is wrong."""
    key = messages.UpdateFeaturesRequest.FeatureUpdateKey
    keys = [key(feature=name, max_version_level=level, upgrade_type=kind) for name, level in levels]
    result = update_features(state, messages.UpdateFeaturesRequest(feature_updates=keys))
    response = result.response
    assert (response.error_code == ErrorCode.NONE) is (response.error_message is None)
    records = [(r.name, r.feature_level) for r in result.records if isinstance(r, messages.FeatureLevelRecord)]
    return records, (response.error_message or "").rpartition("had an error: ")[2]


def test_metadata_version_is_written_first_for_it_decides_how_the_others_are_written() -> None:
    records, error = update(view(), ("share.version", 1), ("metadata.version", 33), ("group.version", 1))
    assert (records, error) == ([("metadata.version", 33), ("share.version", 1)], "")


def test_the_quorum_has_a_version_of_its_own() -> None:
    made = view()
    key = messages.UpdateFeaturesRequest.FeatureUpdateKey
    request = messages.UpdateFeaturesRequest(
        feature_updates=[key(feature="kraft.version", max_version_level=1, upgrade_type=1)]
    )

    def updated() -> tuple[bool, list[MetadataRecord], str | None]:
        result = update_features(made, request)
        return result.upgrades_kraft_version, result.records, result.response.error_message

    assert updated() == (False, [], None), "it has been upgraded"
    named, state = made.quorum.voters, made.quorum.quorum.state
    assert isinstance(state, Leader)
    state.named = VoterSet.of([Voter(1, ZERO_UUID)])
    made.quorum.history._entries[:] = [VotersFrom(0, state.named, kraft_version=0)]
    assert (updated()[2] or "").endswith("not all of the voters support it")
    state.named = named
    assert updated() == (True, [messages.NoOpRecord()], None)
    request.validate_only = True
    assert updated() == (False, [], None)


def test_the_quorums_version_is_never_lowered() -> None:
    invalid = "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature"
    assert update(view(), ("kraft.version", 0))[1].startswith(f"{invalid} without setting the upgrade type")
    for kind in (2, 3):
        assert update(view(), ("kraft.version", 0), kind=kind)[1] == f"{invalid}."


def test_every_broker_must_support_the_level() -> None:
    supports = {"metadata.version": VersionRange(7, 33)}
    assert update(view(supports, supports), ("metadata.version", 33))[0] == [("metadata.version", 33)]
    behind = {"metadata.version": VersionRange(7, 32)}
    records, error = update(view(supports, behind), ("metadata.version", 33))
    assert records == []
    assert error == "Invalid update version 33 for feature metadata.version. Broker 2 only supports versions 7-32"
    ahead = {"metadata.version": VersionRange(31, 33)}
    assert "Broker 1 only supports versions 31-33" in update(view(ahead), ("metadata.version", 30))[1]
    assert update(view(ahead), ("metadata.version", 31))[1] == ""
    assert "Broker 1 does not support this feature." in update(view({}), ("share.version", 1))[1]


def test_every_controller_must_support_the_level_and_every_voter_must_have_registered() -> None:
    made = view()
    update_to = ("metadata.version", 33)

    def with_controllers(levels: dict[int, VersionRange], metadata_version: int = 29) -> ControllerView:
        controllers = {
            i: ControllerRegistration(i, b"i" * 16, (), {"metadata.version": offered}) for i, offered in levels.items()
        }
        image = made.image._replace(
            cluster=made.image.cluster._replace(controllers=controllers), features=FeaturesImage(metadata_version)
        )
        return made._replace(image=image)

    # This controller is number 1, whatever its registration says.
    assert update(with_controllers({1: VersionRange(7, 8), 2: VersionRange(7, 33)}), update_to)[1] == ""
    behind = with_controllers({2: VersionRange(7, 32)})
    assert "Controller 2 only supports versions 7-32" in update(behind, update_to)[1]
    assert "Controller 2 does not support this feature." in update(behind, ("share.version", 1))[1]
    assert update(behind, ("group.version", 0), kind=2)[1] == ""
    made.quorum.history.add(VotersFrom(made.quorum.end_offset, VoterSet.of([Voter(1, ZERO_UUID), Voter(3, ZERO_UUID)])))
    missing = "controller 3 has not registered, and may not support this feature"
    assert missing in update(with_controllers({}), update_to)[1]
    # Before controllers registered nobody could know.
    assert update(with_controllers({}, CONTROLLER_REGISTRATION_SINCE - 1), update_to)[1] == ""


def test_level_zero_needs_no_support() -> None:
    assert update(view({}), ("group.version", 0), kind=2) == ([("group.version", 0)], "")


def test_metadata_version_is_lowered_only_where_no_format_changed() -> None:
    assert update(view(), ("metadata.version", 27), kind=2) == ([("metadata.version", 27)], "")
    for current, level in ((30, 29), (29, 22), (24, 22)):
        state = view(features=FeaturesImage(current))
        records, error = update(state, ("metadata.version", level), kind=2)
        assert records == []
        assert error == (
            f"Invalid metadata.version {level}. Refusing to perform the requested downgrade because it might delete "
            "metadata information."
        )
    assert update(view(features=FeaturesImage(30)), ("metadata.version", 30), kind=2) == ([], "")


def test_the_bounds_of_a_level_are_inclusive() -> None:
    assert update(view(features=FeaturesImage(8)), ("metadata.version", 33))[1] == ""
    assert "only supports versions 7-33" in update(view(), ("metadata.version", 34))[1]
    assert "only supports versions 7-33" in update(view(), ("metadata.version", 6), kind=2)[1]


def test_the_default_bootstrap_needs_no_update() -> None:
    harness = ControllerHarness()
    levels = [(r.name, r.feature_level) for r in bootstrap_records() if isinstance(r, messages.FeatureLevelRecord)]
    assert update(harness.view(version=2), *levels) == ([], "")
