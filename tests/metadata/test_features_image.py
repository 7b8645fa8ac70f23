"""Finalized levels: metadata.version and kraft.version apart from the others, level 0 as if never finalized."""

from __future__ import annotations

from barnabas.metadata.features_image import FeaturesDelta, FeaturesImage
from barnabas.protocol import messages


def after(image: FeaturesImage, **levels: int) -> FeaturesImage:
    delta = FeaturesDelta(image)
    for name, level in levels.items():
        delta.replay(messages.FeatureLevelRecord(name=name.replace("_", "."), feature_level=level))
    return delta.apply()


def test_levels() -> None:
    image = FeaturesImage(30, {"a": 2}, 1)
    assert [image.level(name) for name in ("metadata.version", "kraft.version", "a", "b")] == [30, 1, 2, 0]
    assert FeaturesImage().level("metadata.version") == 0


def test_all_levels_are_listed_by_name() -> None:
    assert list(FeaturesImage(30, {"z": 1, "a": 2}, 1).all_finalized().items()) == [
        ("a", 2),
        ("kraft.version", 1),
        ("metadata.version", 30),
        ("z", 1),
    ]
    assert FeaturesImage().all_finalized() == {}


def test_records_change_levels_and_zero_removes_one() -> None:
    image = after(FeaturesImage(30, {"a": 2, "b": 1}, 1), a=0, c=3)
    assert image == FeaturesImage(30, {"b": 1, "c": 3}, 1)
    assert after(image, metadata_version=31) == FeaturesImage(31, {"b": 1, "c": 3}, 1)
