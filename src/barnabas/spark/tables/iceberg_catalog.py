"""The catalogue of Iceberg tables, by its properties or by its name in pyiceberg's own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.spark.tables.store_errors import in_words

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_NAME = "barnabas"
"""The catalogue's name, under which a SQL catalogue keeps its tables, if the properties have no `name`."""


def open_catalog(catalog: str | Mapping[str, str]) -> Catalog:
    """Return a catalogue.

    Args:
        catalog: its name, or its properties.

    Raises:
        ValueError: it is none that pyiceberg can open, it does not answer, or it rejects the request.
    """
    # The audit of other tables does without it.
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import RESTError

    properties = {"name": catalog} if isinstance(catalog, str) else dict(catalog)
    name = properties.pop("name", _NAME)
    place = properties.get("uri", name)
    try:
        return load_catalog(name, **properties)
    except RESTError as error:
        raise ValueError(
            f"the catalogue {place} rejects the request: {error}. Check its uri and its credentials"
        ) from error
    except OSError as error:
        raise ValueError(f"the catalogue {place} does not answer: {in_words(error)}. Check its uri") from error


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
