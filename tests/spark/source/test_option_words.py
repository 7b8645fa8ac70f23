"""Errors of the source name options that Spark's users can set."""

from barnabas.spark.option_names import SOURCE_OPTIONS, check_names
from barnabas.spark.source.option_words import SPARK


def test_the_words_are_options():
    assert {SPARK.starting, SPARK.ending, SPARK.patience} <= set(SOURCE_OPTIONS)
    assert SPARK.skips.split()[0] in SOURCE_OPTIONS
    check_names([SPARK.uncommitted.partition("=")[0]], SOURCE_OPTIONS)
