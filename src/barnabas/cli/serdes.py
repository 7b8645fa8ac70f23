"""`-s` and `-r` of `consume` and `produce`: keys and values that are not text, in kcat's words.

    -s avro              keys as they are, values in Avro     (kcat: both; a key is text far more often)
    -s value=avro        the same
    -s key=json -s value=protobuf

Avro, Protobuf and JSON stand behind the id of a schema of the registry. `consume` prints JSON, `produce` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click

from barnabas.cli.registry_options import registry_config_option
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

FORMATS = ("avro", "protobuf", "json", "msgpack")
_PARTS = ("key", "value")


class Serdes(NamedTuple):
    """The formats of keys and values; None for bytes as they are.

    Attributes:
        registry: its address, or a folder of schemas; None if no format needs one, or the file has it.
        registry_config: a file of the registry's options.
    """

    key: str | None = None
    value: str | None = None
    registry: str | None = None
    registry_config: str | None = None

    def __bool__(self) -> bool:
        return self.key is not None or self.value is not None


def serdes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `-s` and `-r`; the command gets them as `formats`, `registry` and `registry_config`, for `serdes_of`."""
    formats = click.option(
        "-s",
        "--serdes",
        "formats",
        multiple=True,
        metavar="[key=|value=]FORMAT",
        help=f"Values, or keys, are {', '.join(FORMATS[:-1])} (they need -r) or {FORMATS[-1]}; repeat.",
    )
    registry = click.option(
        "-r", "--registry", metavar="URL,…", help="The schema registry, or a folder of its schemas, for -s."
    )
    return formats(registry(registry_config_option(function)))


def serdes_of(formats: tuple[str, ...], registry: str | None, registry_config: str | None = None) -> Serdes:
    """Return what the options say.

    Raises:
        ValueError: a format is unknown or given twice, or needs a registry, or none does.
    """
    found: dict[str, str] = {}
    for each in formats:
        part, equals, format = each.rpartition("=")
        part = part if equals else "value"
        if part not in _PARTS:
            raise ValueError(f"-s: '{printable(part)}' is not key or value{did_you_mean(part, _PARTS)}")
        if format not in FORMATS:
            raise ValueError(
                f"-s: '{printable(format)}' is not one of {', '.join(FORMATS)}{did_you_mean(format, FORMATS)}"
            )
        if part in found:
            raise ValueError(f"-s: the format of the {part} is given twice")
        found[part] = format
    by_schema = [format for format in found.values() if format != "msgpack"]
    if by_schema and registry is None and registry_config is None:
        raise ValueError(f"-s {by_schema[0]} needs the schemas of a registry: -r http://HOST:8081")
    if (registry is not None or registry_config is not None) and not by_schema:
        raise ValueError("-r is for -s avro, -s protobuf and -s json")
    return Serdes(found.get("key"), found.get("value"), registry, registry_config)
