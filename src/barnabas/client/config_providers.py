r"""Values of settings from outside their file: `${file:/etc/secrets:key}`, `${directory:/run/secrets:key}`, `${env:NAME}`.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets
    config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
    config.providers.env.param.allowlist.pattern=^KAFKA_

    provider     path                  key                       value
    file         a properties file     a property in it          the property's
    directory    a directory           the name of a file in it  all that the file holds, as UTF-8
    env          none                  an environment variable   the variable's

- A value may have several variables, and text around them. What a provider returns is not looked at again.
- A variable of a provider that `config.providers` does not name stays as it is, as in Kafka.
- Any other variable without a value is an error that names the setting and the variable. Apache Kafka takes the variable's own text then,
  and a password would be `${file:…}`.
- The values are secrets: `Resolved` has them apart, so that lines can be printed without them (`words.hidden_values`).

Left out: providers of one's own, as classes in Java; values that change while the process runs.
Source: Kafka's `ConfigTransformer`, `AbstractConfig.resolveConfigVariables`, `AllowedPaths`; KIP-297, KIP-421, KIP-635, KIP-887, KIP-993.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from barnabas.client.properties import read_properties
from barnabas.words.printable import printable

__all__ = ["PROVIDERS", "ProviderError", "Resolved", "resolved"]

PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

Provider = Callable[[str, str], str]
"""Takes path and key, and returns the value; raises LookupError with the reason, in words."""


class ProviderError(ValueError):
    """A provider cannot be used, or a variable has no value; one line, without values."""


class Resolved(NamedTuple):
    """Settings without variables.

    Attributes:
        values: what came from providers.
    """

    properties: dict[str, str]
    values: frozenset[str]

    def __repr__(self) -> str:
        return f"<Resolved properties={len(self.properties)} values={len(self.values)}>"


def resolved(properties: Mapping[str, str], environ: Mapping[str, str]) -> Resolved:
    """Return the settings with the values of their variables.

    Args:
        environ: the environment's variables.

    Raises:
        ProviderError: a provider cannot be used, or a variable of one has no value.
    """
    names = [name for each in properties.get(PROVIDERS, "").split(",") if (name := each.strip())]
    if not names:
        return Resolved(dict(properties), frozenset())
    providers = {name: _provider(name, properties, environ) for name in names}
    values: set[str] = set()
    found = {}
    for setting, text in properties.items():
        is_of_providers = setting == PROVIDERS or setting.startswith(f"{PROVIDERS}.")
        found[setting] = text if is_of_providers else _filled(setting, text, providers, values)
    return Resolved(found, frozenset(value for value in values if value))


def _filled(setting: str, text: str, providers: Mapping[str, Provider], values: set[str]) -> str:
    def value(variable: re.Match[str]) -> str:
        provider = providers.get(variable[1])
        if provider is None:
            return variable[0]
        try:
            found = provider(variable[2] or "", variable[3])
        except LookupError as error:
            raise ProviderError(f"{printable(setting)}: {printable(variable[0])}: {error.args[0]}") from None
        values.update((found, found.strip()))
        return found

    return _VARIABLE.sub(value, text)


def _provider(name: str, properties: Mapping[str, str], environ: Mapping[str, str]) -> Provider:
    setting = f"{PROVIDERS}.{name}.class"
    written = properties.get(setting, "").strip()
    parameters = f"{PROVIDERS}.{name}.param."
    if not written:
        raise ProviderError(f"{PROVIDERS} names {printable(name)}, but {printable(setting)} is not set: {_CLASSES}")
    if written == f"{_PACKAGE}EnvVarConfigProvider":
        return _variables(environ, f"{parameters}allowlist.pattern", properties)
    read = {f"{_PACKAGE}FileConfigProvider": _property, f"{_PACKAGE}DirectoryConfigProvider": _content}.get(written)
    if read is None:
        raise ProviderError(f"{printable(setting)}={printable(written)}: barnabas has no such class: {_CLASSES}")
    allowed = _allowed_paths(f"{parameters}allowed.paths", properties)

    def value(path: str, key: str) -> str:
        if not path:
            raise LookupError("it names no path, as in ${PROVIDER:/path:key}")
        if allowed and not any(PurePosixPath(os.path.normpath(path)).is_relative_to(each) for each in allowed):
            raise LookupError(f"{printable(parameters)}allowed.paths does not allow this path")
        try:
            return read(path, key)
        except OSError as error:
            raise LookupError((error.strerror or str(error)).lower()) from None

    return value


_CLASSES = f"use {_PACKAGE}FileConfigProvider, DirectoryConfigProvider or EnvVarConfigProvider"


def _property(path: str, key: str) -> str:
    try:
        properties = read_properties(path)
    except ValueError as error:
        raise LookupError(str(error)) from None
    if key not in properties:
        raise LookupError(f"the file has no property {printable(key)}")
    return properties[key]


def _content(path: str, key: str) -> str:
    file = os.path.join(path, key)
    if not os.path.isdir(path):
        raise LookupError("the path is not a directory")
    if os.path.basename(key) != key or not os.path.isfile(file):
        raise LookupError(f"the directory has no file {printable(key)}")
    with open(file, "rb") as content:
        return content.read().decode(errors="replace")


def _variables(environ: Mapping[str, str], setting: str, properties: Mapping[str, str]) -> Provider:
    pattern = properties.get(setting, "").strip()
    try:
        allowed = re.compile(pattern)
    except re.error as error:
        raise ProviderError(f"{printable(setting)}={printable(pattern)}: {error}") from None

    def value(path: str, key: str) -> str:
        if path:
            raise LookupError("an environment variable has no path, as in ${env:NAME}")
        if not allowed.search(key):
            raise LookupError(f"{printable(setting)} does not allow this variable")
        if key not in environ:
            raise LookupError("the environment has no such variable")
        return environ[key]

    return value


def _allowed_paths(setting: str, properties: Mapping[str, str]) -> list[str]:
    """Return the paths below which a provider may read; none if it may read everywhere."""
    paths = []
    for each in properties.get(setting, "").split(","):
        if not each.strip():
            continue
        path = os.path.normpath(each.strip())
        if not os.path.isabs(path):
            raise ProviderError(f"{printable(setting)}: the path {printable(path)} is not absolute")
        if not os.path.exists(path):
            raise ProviderError(f"{printable(setting)}: the path {printable(path)} does not exist")
        paths.append(path)
    return paths
