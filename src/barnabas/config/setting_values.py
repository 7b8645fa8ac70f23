"""A node's settings by Kafka's name: the given texts, parsed, over the defaults.

`value` returns any broker setting. The others return it with its type, for a setting that has no field of its own in `BrokerConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.config_table import EMBEDDED_DEFAULTS, config_schema
from barnabas.metadata.config_schema import ConfigResourceType, ConfigValue

__all__ = ["SettingValues"]


class SettingValues:
    """The values of one node's settings.

    Attributes:
        properties: the given properties and those that one node implies (`IMPLIED`), text by name.
        embedded: whether an embedded broker's defaults apply.
    """

    properties: Mapping[str, str]
    embedded: bool
    _values: dict[str, ConfigValue]

    def value(self, name: str) -> ConfigValue:
        """Return any broker setting by Kafka's name."""
        if name not in self._values:
            key = config_schema().of(ConfigResourceType.BROKER)[name]
            text = EMBEDDED_DEFAULTS.get(name, key.default) if self.embedded else key.default
            self._values[name] = key.parse(text)
        return self._values[name]

    def int_value(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is not a whole number"
        return value

    def str_value(self, name: str) -> str:
        value = self.value(name)
        assert isinstance(value, str), f"{name} is not a string"
        return value

    def bool_value(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is not a boolean"
        return value

    def list_value(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        assert isinstance(value, tuple), f"{name} is not a list"
        return value
