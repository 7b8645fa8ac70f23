"""A folder filled from a registry answers as the registry does."""

from __future__ import annotations

import os

import pytest

from barnabas.schemas.errors import SchemaError, SchemaNotFound
from barnabas.schemas.known_schemas import read_folder
from barnabas.schemas.pull import pull
from barnabas.schemas.references import needed_by_schema
from barnabas.schemas.source import source_of


def filled(server):
    server.add("money-value", '"int"')
    server.add("money-value", '"long"')
    server.add("price-value", '["int"]', references=[{"name": "Money", "subject": "money-value", "version": 1}])
    server.add("orders-value", "{}", "JSON", [{"name": "Price", "subject": "price-value", "version": 1}])
    return source_of(server.url)


def test_a_subject_comes_with_its_versions_and_what_they_need(server, tmp_path):
    registry = filled(server)
    assert pull(server.url, tmp_path, subjects=["orders-value"]) == [1, 3, 4]
    known = read_folder(tmp_path)
    assert known.subjects == {"orders-value": {1: 4}, "price-value": {1: 3}, "money-value": {1: 1}}
    for source in (registry, known):
        schema = source.version("orders-value").schema
        assert [name for name, _ in needed_by_schema(source, schema)] == ["Money", "Price"]
    assert pull({"url": server.url}, tmp_path) == [1, 2, 3, 4]
    assert read_folder(tmp_path).versions("money-value") == [1, 2]


def test_an_id_comes_with_its_subjects(server, tmp_path):
    filled(server)
    assert pull(server.url, tmp_path, ids=[2]) == [2]
    assert read_folder(tmp_path).subjects == {"money-value": {2: 2}}


def test_what_cannot_be_copied(server, tmp_path):
    with pytest.raises(SchemaError, match="has no schemas"):
        pull(server.url, tmp_path)
    with pytest.raises(SchemaNotFound, match="subject orders"):
        pull(server.url, tmp_path, subjects=["orders"])
    with pytest.raises(SchemaNotFound, match="schema 9"):
        pull(server.url, tmp_path, ids=[9])
    filled(server)
    pull(server.url, tmp_path)
    with pytest.raises(SchemaError, match="is not the address of a schema registry"):
        pull(str(tmp_path), tmp_path)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("instant", range(4))
def test_after_a_kill_the_folder_can_be_read_and_pull_goes_on(server, tmp_path, monkeypatch, instant):
    server.add("money-value", '"int"')
    server.add("money-value", '"long"')
    server.add("orders-value", "{}", "JSON")
    steps = iter([os.replace] * instant)

    def replace(old, new):
        if (step := next(steps, None)) is None:
            raise Killed
        step(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(Killed):
            pull(server.url, tmp_path)
    assert len(read_folder(tmp_path).schemas if instant else ()) == instant
    assert pull(server.url, tmp_path) == [1, 2, 3]
    assert read_folder(tmp_path).subjects == {"money-value": {1: 1, 2: 2}, "orders-value": {1: 3}}
