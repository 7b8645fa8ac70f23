"""The settings that tools list without a broker."""

from barnabas.cli.setting_names import Setting, setting_names, settings


def test_a_setting_has_type_default_and_meaning() -> None:
    (found,) = [each for each in settings("topic") if each.name == "cleanup.policy"]
    assert found[:3] == Setting("cleanup.policy", "list", "delete", "")[:3]
    assert "compact" in found.documentation


def test_internal_settings_are_left_out() -> None:
    assert "retention.ms" in setting_names("topic")
    assert "internal.segment.bytes" not in setting_names("topic")


def test_every_scope_has_settings() -> None:
    assert all(setting_names(scope) for scope in ("topic", "broker", "group", "client-metrics"))
