"""The text format, read back by Prometheus's own parser."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.metrics import exposition
from barnabas.metrics.exposition import family, labels, summary
from barnabas.turns import ELEMENT
from tests.short_turns import set_turn


def test_what_is_written_is_read_back() -> None:
    hostile = 'a\\b"c\nd'
    text = family("x_total", "counter", "Help.", [("", 1), (labels({"name": hostile, "n": 2}), 2.5)])
    (found,) = text_string_to_metric_families(text)
    assert (found.name, found.type, found.documentation) == ("x", "counter", "Help.")
    assert [(sample.labels, sample.value) for sample in found.samples] == [
        ({}, 1.0),
        ({"name": hostile, "n": "2"}, 2.5),
    ]


def test_numbers() -> None:
    values = [0, -1, 2**63, 1e-9, float("inf"), float("-inf"), float("nan")]
    text = family("x", "gauge", "Help.", [(labels({"n": number}), value) for number, value in enumerate(values)])
    (found,) = text_string_to_metric_families(text)
    read = [sample.value for sample in found.samples]
    assert read[:6] == [float(value) for value in values[:6]]
    assert math.isnan(read[6])


def test_a_family_without_samples_is_nothing() -> None:
    assert family("x", "gauge", "Help.", []) == ""


def test_a_summary_is_one_family() -> None:
    text = summary("x", "Help.", [('a="b"', [(0.5, 1.5), (0.99, 2.0)], 7.5, 3)])
    (found,) = text_string_to_metric_families(text)
    assert found.type == "summary"
    assert [(sample.name, sample.labels.get("quantile"), sample.value) for sample in found.samples] == [
        ("x", "0.5", 1.5),
        ("x", "0.99", 2.0),
        ("x_sum", None, 7.5),
        ("x_count", None, 3.0),
    ]
    assert summary("x", "Help.", []) == ""


def test_a_large_family_is_made_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 2 * ELEMENT)
    taken: list[int] = []
    samples = ((f'n="{number}"', taken.append(number) or number) for number in range(5))
    pieces = exposition.family_in_pieces("name", "gauge", "Text.", samples)
    texts = [(text.count("name{"), len(taken)) for text in pieces]
    assert texts == [(2, 2), (2, 4), (1, 5)]
    whole = exposition.family("name", "gauge", "Text.", [(f'n="{number}"', number) for number in range(5)])
    assert whole.splitlines()[:3] == ["# HELP name Text.", "# TYPE name gauge", 'name{n="0"} 0']
    assert len(whole.splitlines()) == 7
    assert list(exposition.family_in_pieces("name", "gauge", "Text.", ())) == []
