"""The parts of a node that serve share groups: created on first use, dropped by a reset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.node.share_groups import ShareServices
from tests.api.served_node import Serving


@pytest.fixture
def share(tmp_path: Path) -> Iterator[ShareServices]:
    node = Serving(tmp_path)
    assert isinstance(node.server.services.share, ShareServices)
    yield node.server.services.share
    node.close()


def test_a_start_creates_no_share_partitions(share: ShareServices) -> None:
    assert share.partitions_if_any is None
    assert repr(share) == "<ShareServices partitions=None>"
    share.reset()
    share.close()
    assert share.partitions_if_any is None


def test_the_parts_are_created_once(share: ShareServices) -> None:
    assert share.partitions is share.partitions
    assert share.partitions_if_any is share.partitions
    assert share.persister is share.persister
    assert share.groups is share.groups


def test_a_reset_drops_the_share_partitions_and_closes_them(share: ShareServices) -> None:
    first = share.partitions
    closed: list[bool] = []
    first.close = lambda: closed.append(True)  # type: ignore[method-assign]
    share.reset()
    assert closed == [True]
    assert share.partitions_if_any is None
    assert share.partitions is not first
