"""Brokers as commands name them."""

from __future__ import annotations

import pytest

from barnabas.cli.failure import Failure
from barnabas.cli.named_brokers import named_brokers
from barnabas.client.admin import ClusterDescription, Node
from tests.cli.made_up_cluster import MadeUpAdmin


class Cluster(MadeUpAdmin):
    """Brokers 1 and 2 serve, and 3 is fenced."""

    def describe_cluster(self) -> ClusterDescription:
        nodes = [Node(each, "h", each) for each in (2, 1, 3)]
        return ClusterDescription("id", 1, nodes[:2], nodes[2:])


def ids(*wanted: int) -> list[int]:
    return [each.id for each in named_brokers(Cluster(), wanted)]


def test_all_serve_or_those_that_are_named_in_their_order() -> None:
    assert (ids(), ids(2), ids(2, 1, 2)) == ([1, 2], [2], [2, 1])


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (3, "broker 3 does not serve (start it, then ask again)"),
        (9, "broker 9 is not part of the cluster now (its brokers are: 1, 2)"),
    ],
)
def test_one_that_does_not_serve(wanted: int, words: str) -> None:
    with pytest.raises(Failure) as failure:
        ids(1, wanted)
    assert failure.value.format_message() == words
