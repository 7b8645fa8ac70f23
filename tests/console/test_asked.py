"""The query of a request."""

import pytest

from barnabas.console.asked import Asked
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.links import Links
from barnabas.console.sampler import Sampler


def asked(**query: str) -> Asked:
    cluster = AskedCluster("local", lambda: pytest.fail("it is not asked"))
    return Asked(cluster, Sampler(cluster), Links(""), query, 0)


@pytest.mark.parametrize(("text", "number"), [("3", 3), ("", 1), ("x", 1), ("-1", 1), ("٣", 1), ("9" * 5000, 1)])
def test_numbers(text: str, number: int) -> None:
    assert asked(page=text).number("page", 1) == number


def test_links() -> None:
    assert asked().topic_link("a b") == "/clusters/local/topic?name=a+b"
    assert asked().group_link("..") == "/clusters/local/group?id=.."
