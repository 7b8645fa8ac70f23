"""Values of `cordoned.log.dirs`, and what Apache Kafka 4.3.1 says about those that are not valid."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.metadata.config_schema import ConfigError
from barnabas.metadata.cordoned_directories import cordoned_among, why_not_cordoned

DIRS = ("/disks/a", "/disks/b/")
ALONE = "When cordoned.log.dirs is set to *, it must not contain other values"
MISSING = "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ((), ""),
        (("/disks/a",), ""),
        (("/disks/b", "/disks/a"), ""),
        (("*",), ""),
        (("*", "/disks/a"), ALONE),
        (("/disks/c", "/disks/a", "x"), f"{MISSING}/disks/c, x"),
    ],
)
def test_values(value: tuple[str, ...], why: str) -> None:
    assert why_not_cordoned(value, DIRS) == why


def test_directories_that_are_named() -> None:
    assert cordoned_among((), DIRS) == cordoned_among(None, DIRS) == frozenset()
    assert cordoned_among(("/disks/b", "/gone"), DIRS) == {"/disks/b/"}
    assert cordoned_among(("*",), DIRS) == set(DIRS)


def test_a_file_that_names_another_directory_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Missing entries : /c$"):
        BrokerConfig.from_properties({"log.dirs": "/a,/b", "cordoned.log.dirs": "/a,/c"})
