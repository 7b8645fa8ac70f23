"""The catalogue of Iceberg tables, by its properties or by its name in pyiceberg's own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_NAME = "barnabas"
"""The catalogue's name, under which a SQL catalogue keeps its tables, if the properties have no `name`."""


def open_catalog(catalog: str | Mapping[str, str]) -> Catalog:
    """Return a catalogue.

    Args:
        catalog: its name, or its properties.
    """
    # The audit of other tables does without it.
    from pyiceberg.catalog import load_catalog

    if isinstance(catalog, str):
        return load_catalog(catalog)
    properties = dict(catalog)
    return load_catalog(properties.pop("name", _NAME), **properties)


def catalog_of(texts: tuple[str, ...]) -> str | dict[str, str]:
    """Return what `open_catalog` takes, from a command line: one name, or `KEY=VALUE` each.

    Raises:
        ValueError: the texts are neither.
    """
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    pairs = [text.split("=", 1) for text in texts if "=" in text]
    if not texts or len(pairs) != len(texts):
        raise ValueError(
            "name the table's catalogue: --catalog NAME, or --catalog KEY=VALUE for each of its properties"
        )
    return dict(pairs)
