"""One broker for the tests of this room that need a running one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas


@pytest.fixture(scope="package")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running
