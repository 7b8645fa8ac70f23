"""The topics that a command line names."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.topic_arguments import required, whole_name


def test_each_name_counts_once_and_one_is_required() -> None:
    assert required(("b", "a"), ("a", "c")) == ["b", "a", "c"]
    with pytest.raises(click.UsageError, match="Missing argument"):
        required((), ())


def test_a_regular_expression_that_is_none() -> None:
    assert whole_name("o.*").fullmatch("orders")
    with pytest.raises(click.BadParameter, match="is not a regular expression"):
        whole_name("(")
