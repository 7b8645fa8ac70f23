"""Compatibility levels: which way they look, and how far."""

from barnabas.registry.levels import CompatibilityLevel, Mode


def test_each_level_looks_its_way() -> None:
    found = {str(each): (each.is_backward, each.is_forward, each.is_transitive) for each in CompatibilityLevel}
    assert found == {
        "NONE": (False, False, False),
        "BACKWARD": (True, False, False),
        "BACKWARD_TRANSITIVE": (True, False, True),
        "FORWARD": (False, True, False),
        "FORWARD_TRANSITIVE": (False, True, True),
        "FULL": (True, True, False),
        "FULL_TRANSITIVE": (True, True, True),
    }


def test_modes() -> None:
    assert list(Mode) == ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"]
