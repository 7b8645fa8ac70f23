"""The arguments of `barnabas.Broker`: checked, and turned into the broker's configuration and requests.

Each mistake is one sentence that names the argument. An argument of another type raises `TypeError`, a value that is not valid
`ConfigError`, and a topic's setting that is unknown the `KafkaError` that the controller would return.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.config_table import config_schema
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsRequest
from barnabas.words.kafka_words import in_plain_words
from barnabas.words.nearest import did_you_mean

__all__ = ["broker_config", "checked_config", "checked_path", "checked_port", "setting_texts", "topic_request"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

_HOST = "127.0.0.1"
_BROKER_EXAMPLE = '{"num.partitions": 4}'
_TOPIC_EXAMPLE = '{"retention.ms": 60000}'


def checked_path(data_dir: str | PathLike[str] | None) -> str | None:
    """Return the argument `data_dir` as text; None for a temporary directory."""
    if data_dir is not None and not isinstance(data_dir, str | PathLike):
        raise TypeError(f"data_dir={data_dir!r} is not a path: pass text or a pathlib.Path, or leave it out")
    return None if data_dir is None else fspath(data_dir)


def checked_port(port: int) -> int:
    if not isinstance(port, int):
        raise TypeError(f"port={port!r} is not a number: pass 1 to 65535, or 0 for a free one")
    return port


def setting_texts(config: Mapping[str, object] | None, example: str = _BROKER_EXAMPLE) -> dict[str, str]:
    """Return the argument `config`, with each value as a properties file writes it."""
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise TypeError(f"config= is {_kind(config)}: pass a mapping of settings, such as {example}")
    for name in config:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not the name of a setting: pass a mapping such as {example}")
    return {name: _text(name, value) for name, value in config.items()}


def broker_config(
    folder: str,
    port: int,
    settings: Mapping[str, str],
    protocol: str = "PLAINTEXT",
    secured: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """Return the configuration of an embedded broker.

    Args:
        protocol: of its listener.
        secured: the settings of security; the caller's own come before them.

    Raises:
        ConfigError: an argument or a setting is not valid.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"port={port} is not a valid port: pass 1 to 65535, or 0 for a free one")
    if not folder:
        raise ConfigError("data_dir= is empty: name a directory, or leave it out for a temporary one")
    if "," in folder:
        raise ConfigError(f"data_dir={folder}: a comma separates directories in Kafka's settings; pass another name")
    if "listeners" in settings and port:
        raise ConfigError("listeners and port= both name a port: pass one of them")
    for name in settings.keys() & {"log.dirs", "log.dir"}:
        raise ConfigError(f"{name} is not a setting of an embedded broker: pass data_dir=")
    if "listeners" in settings and secured is not None:
        raise ConfigError("listeners and security= both choose the listeners: pass one of them")
    listeners = {"listeners": f"{protocol}://{_HOST}:{port}"}
    return checked_config({**listeners, **(secured or {}), **settings, "log.dirs": folder}, embedded=True)


def checked_config(properties: Mapping[str, str], *, embedded: bool = False) -> BrokerConfig:
    """Return the configuration that properties mean.

    Raises:
        ConfigError: a setting is unknown or not valid.
    """
    try:
        config = BrokerConfig.from_properties(properties, embedded=embedded)
    except ConfigError as error:
        raise ConfigError(in_plain_words(str(error)).message) from None
    for name in config.unknown:
        known = config_schema().of(ConfigResourceType.BROKER)
        raise ConfigError(f"{name} is not a setting of the broker{did_you_mean(name, known)}")
    return config


def topic_request(name: str, partitions: int, config: Mapping[str, object] | None) -> CreateTopicsRequest:
    """Return the request that creates a topic of one replica.

    Raises:
        KafkaError: INVALID_CONFIG, a setting is unknown; the sentence names the nearest one.
    """
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is not the name of a topic: pass text")
    if not isinstance(partitions, int):
        raise TypeError(f"partitions={partitions!r} is not a number: pass 1 or more")
    settings, known = setting_texts(config, _TOPIC_EXAMPLE), config_schema().of(ConfigResourceType.TOPIC)
    for unknown in settings.keys() - known.keys():
        problem = f"{unknown} is not a setting of a topic{did_you_mean(unknown, known)}"
        raise KafkaError(ErrorCode.INVALID_CONFIG, problem)
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in settings.items()]
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=configs
    )
    return CreateTopicsRequest(topics=[topic])


def _text(name: str, value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_text(name, item) for item in value)
    if not isinstance(value, str | int | float):
        raise TypeError(f"{name} is {_kind(value)}: pass text, a number, a boolean or a list of them")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
