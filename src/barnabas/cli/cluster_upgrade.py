"""`barnabas cluster upgrade`: the nodes of a cluster restart one by one in a new version, and then its features are raised.

The walk is that of `cluster restart`. The features are a step of their own, because there is no way back afterwards: an older version
may not start in a cluster whose metadata has a level that it does not know.

No request tells a client which version a broker runs. What it supports does: a node that supports other levels than the others has
probably not been upgraded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.output import Found, Table
from barnabas.cli.rolling import Walk, Way, rolling_options
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin
from barnabas.client.features import BrokerFeatures
from barnabas.protocol.errors import KafkaError
from barnabas.words.nearest import did_you_mean


class Feature(NamedTuple):
    """A feature of a cluster.

    Attributes:
        level: that the cluster has finalized; 0 if the feature is off.
        lowest, highest: the levels that every broker supports.
    """

    level: int
    lowest: int
    highest: int


@click.command()
@click.argument("nodes", nargs=-1, type=click.IntRange(min=0), metavar="[NODE]…")
@click.option("--finalize", is_flag=True, help="Raise the features; then there is no way back to the old version.")
@click.option("--feature", "named", multiple=True, metavar="NAME", help="Also raise this one, which is off; repeat.")
@rolling_options
@session_options
def upgrade(session: Session, nodes: tuple[int, ...], finalize: bool, named: tuple[str, ...], way: Way) -> None:
    """Upgrade the nodes of a cluster one by one, as `cluster restart` does, then show the features that can be raised.

    COMMAND installs the new version and restarts the node. With --finalize metadata.version, and every other feature that is on, is
    raised to the highest level that all brokers support; alone it only does that.

    \b
    barnabas cluster upgrade --command 'ssh {host} /opt/upgrade-barnabas.sh'
    barnabas cluster upgrade --finalize
    """
    walks = not finalize or way.is_named
    if walks:
        way.require()
    failures: list[Failure] = []
    with session.admin() as admin:
        result = Found({}, [])
        if walks:
            walk = Walk(admin, nodes, way, name="upgrade")
            moved = walk.planned() if way.dry_run else walk.carry_out()
            failures += walk.doubts() if way.dry_run else []
            result = Found({"nodes": moved.data}, moved.tables)
        offered = supported_by(admin)
        for node in odd_ones(offered):
            click.echo(f"node {node} supports other features than most: it may run another version", err=True)
        features = features_of(offered)
        raised = levels_to_raise(features, named)
        status = _raise(admin, raised, finalize=finalize, dry_run=way.dry_run)
        table = _table(features, raised, status)
        session.output.show_found(Found({**result.data, "features": table.objects()}, [*result.tables, table]))
    if failures:
        raise Failures(failures)
    if raised and not finalize:
        options = "".join(f" --feature {name}" for name in named)
        click.echo(
            f"raise them with `barnabas cluster upgrade --finalize{options}`, when you no longer want to go back",
            err=True,
        )


def supported_by(admin: Admin) -> dict[int, BrokerFeatures]:
    """Return the features of every broker.

    Raises:
        Failure: one does not answer, so that nothing is known of it.
    """
    found = {}
    for node, each in admin.describe_features().items():
        if isinstance(each, KafkaError):
            raise failure_of(each, f"broker {node}")
        found[node] = each
    return found


def features_of(offered: Mapping[int, BrokerFeatures]) -> dict[str, Feature]:
    """Return each feature that every broker supports, by name."""
    names = set.intersection(*(set(each.supported) for each in offered.values())) if offered else set()
    found = {}
    for name in sorted(names):
        ranges = [each.supported[name] for each in offered.values()]
        level = max(each.finalized.get(name, 0) for each in offered.values())
        found[name] = Feature(level, max(low for low, _ in ranges), min(high for _, high in ranges))
    return found


def odd_ones(offered: Mapping[int, BrokerFeatures]) -> list[int]:
    """Return the brokers that support other levels than most."""
    kinds: list[Any] = [sorted(each.supported.items()) for each in offered.values()]
    most = max(kinds, key=kinds.count, default=None)
    return sorted(node for node, each in offered.items() if sorted(each.supported.items()) != most)


def levels_to_raise(features: Mapping[str, Feature], named: Sequence[str]) -> dict[str, int]:
    """Return the levels to raise features to: of those that are on, and of those that are named.

    Raises:
        Failure: a named feature is unknown to a broker.
    """
    for name in named:
        if name not in features:
            meant = did_you_mean(name, features)
            raise Failure(f"not every broker supports the feature {name}{meant}", f"all support: {', '.join(features)}")
    return {
        name: each.highest
        for name, each in features.items()
        if (each.level > 0 or name in named) and each.highest > each.level
    }


def _raise(admin: Admin, levels: Mapping[str, int], *, finalize: bool, dry_run: bool) -> str:
    """Raise features, or let the controller check that it would; return the word for what was done.

    Raises:
        Failure: the controller rejects it.
    """
    acts = finalize and not dry_run
    if levels and (error := admin.raise_features(levels, validate_only=not acts)) is not None:
        raise failure_of(error)
    return "raised" if acts else "would be raised" if finalize else "can be raised"


def _table(features: Mapping[str, Feature], levels: Mapping[str, int], status: str) -> Table:
    rows = [
        (
            name,
            each.level,
            f"{each.lowest}-{each.highest}",
            levels.get(name),
            status if name in levels else "off" if each.level == 0 else "as high as can be",
        )
        for name, each in features.items()
    ]
    return Table(("FEATURE", "LEVEL", "SUPPORTED", "NEW-LEVEL", "STATUS"), rows, hidden_first=("SUPPORTED",))
