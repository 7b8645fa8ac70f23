"""The error of a security setting."""

from __future__ import annotations

from barnabas.security.setting_error import SecuritySettingError


def test_its_line_names_the_setting() -> None:
    error = SecuritySettingError("ssl.keystore.location", "there is no such file: /k.pem")
    assert str(error) == "ssl.keystore.location: there is no such file: /k.pem"
    assert error.setting == "ssl.keystore.location"
