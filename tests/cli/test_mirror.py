"""`barnabas mirror` between two brokers: its options, and what it says when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli.mirror import mirror
from tests.mirror.conftest import clusters, two_brokers
from tests.mirror.two_clusters import TwoClusters, fill
from tests.retries.records import values

__all__ = ["clusters", "two_brokers"]

NOWHERE = "127.0.0.1:1"
MASKS = """
from dataclasses import replace


def mask(record):
    return None if record.value == b"3" else replace(record, key=b"x", value=b"*" + record.value)


def raises(record):
    if record.value == b"4":
        raise KeyError("amount")
    return record
"""


@pytest.fixture
def orders(clusters: TwoClusters) -> TwoClusters:
    clusters.source.create_topic("orders", partitions=2)
    fill(clusters.addresses[0], "orders", range(6))
    return clusters


@pytest.fixture
def masks(tmp_path: Path) -> str:
    path = tmp_path / "masks.py"
    path.write_text(MASKS)
    return str(path)


@pytest.mark.slow
def test_a_mask_changes_and_drops_records_and_partitions_stay(orders: TwoClusters, masks: str) -> None:
    assert orders.counts("--mask", f"{masks}:mask") == {"orders": (5, 1, 0)}
    found = orders.copied()
    assert values(found) == ["*0", "*2", "*4", "*1", "*5"]
    assert {each.key for each in found} == {b"x"}
    assert orders.refused() == (
        f"error: mirror {orders.source.cluster_id} began with --mask {masks}:mask"
        " (give the same option, or another --name)"
    )


@pytest.mark.slow
def test_a_mask_that_raises_leaves_nothing_half_done(orders: TwoClusters, masks: str) -> None:
    assert orders.refused("--mask", f"{masks}:raises") == (
        "error: raises raised KeyError: 'amount' for orders-0@2 (mend it, and run the same command: it goes on from there)"
    )
    assert orders.copied() == []
    Path(masks).write_text(MASKS.replace('b"4"', 'b"none"'))
    assert orders.counts("--mask", f"{masks}:raises") == {"orders": (6, 0, 0)}


def test_the_same_cluster_twice(clusters: TwoClusters) -> None:
    source = clusters.addresses[0]
    result = CliRunner().invoke(mirror, [source, source])
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: {source} and {source} are the same cluster, {clusters.source.cluster_id}"
        " (name another TARGET; within a cluster, replay copies a topic)\n",
    )


@pytest.mark.parametrize("at", [0, 1])
def test_a_cluster_that_cannot_be_reached(clusters: TwoClusters, at: int) -> None:
    addresses = list(clusters.addresses)
    addresses[at] = NOWHERE
    result = CliRunner().invoke(mirror, addresses)
    assert (result.exit_code, result.stderr) == (
        1,
        f"error: cannot reach {NOWHERE}: connection refused"
        f" ({('SOURCE', 'TARGET')[at]} is the address of a broker, HOST:PORT)\n",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--name", "a b"), "'a b' is not a valid name"),
        (("--topics", ","), "--topics is empty: name a topic"),
        (("--topics", "("), "is not a regular expression"),
        (("--since", "soon"), "'soon' is not a valid time"),
        (("--mask", "mask.py"), "'mask.py' is not file.py:function"),
        (("--mask", "none.py:mask"), "there is no Python file none.py"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(mirror, [NOWHERE, NOWHERE, *options])
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_address_that_is_empty() -> None:
    result = CliRunner().invoke(mirror, ["", NOWHERE])
    assert result.exit_code == 2
    assert "SOURCE is empty: write HOST:PORT" in result.stderr


def test_no_topic_matches(clusters: TwoClusters) -> None:
    result = clusters.run("--topics", "orders,bills.*")
    assert result.exit_code == 0
    assert result.stderr == "no topic of the source matches\n"
