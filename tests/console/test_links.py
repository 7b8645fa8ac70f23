"""Addresses of pages."""

from barnabas.console.links import Links


def test_names_are_quoted() -> None:
    links = Links("/console")
    assert links.to() == "/console/"
    assert links.of_cluster("a/b", "group", id="../?&#", page=None) == "/console/clusters/a%2Fb/group?id=..%2F%3F%26%23"
