"""The catalogue as a command line names it."""

from __future__ import annotations

import pytest

from barnabas.spark.tables.iceberg_catalog import catalog_of


def test_a_name_or_properties() -> None:
    assert catalog_of(("home",)) == "home"
    assert catalog_of(("type=sql", "uri=sqlite:///a?b=c")) == {"type": "sql", "uri": "sqlite:///a?b=c"}


@pytest.mark.parametrize("texts", [(), ("home", "work"), ("type=sql", "home")])
def test_neither(texts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="name the table's catalogue: --catalog NAME"):
        catalog_of(texts)
