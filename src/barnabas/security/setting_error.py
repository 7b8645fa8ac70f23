"""A security setting that cannot be used."""

from __future__ import annotations

__all__ = ["SecuritySettingError"]


class SecuritySettingError(ValueError):
    """One setting cannot be used: the message is one line that names it, its file if it has one, and what to do; never a secret.

    Attributes:
        setting: the name, as Kafka's documentation spells it.
    """

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting}: {why}")
        self.setting = setting
