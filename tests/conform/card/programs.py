"""The table of the card's programs: what runs on a broker and is more than one client.

The tests of a program stand in modules of their own. The table names them, and a hook in `conftest.py` puts their outcomes into the card: a
test's parameter that is a broker's name says where it ran; a scenario passes when all its tests do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import apache_kafka

TOOL_STEPS = "test_a_tool_prints_the_same_on_both_brokers"


@dataclass(frozen=True)
class Program:
    """One row. `scenarios` maps a scenario to what it shows; `tests` maps a test to its scenario.

    A test that `compares` runs on both brokers at once, and Apache Kafka is its measure. A row without tests is one that cannot be had,
    and `version` says why.
    """

    name: str
    language: str
    version: str
    scenarios: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, str] = field(default_factory=dict)
    compares: bool = False


PROGRAMS = (
    Program(
        "Kafka Streams",
        "Java",
        f"kafka-streams {apache_kafka.VERSION}",
        scenarios={
            "word count": "classic and streams protocol, at least once and exactly once: every count once and in order, and an instance"
            " on another disk restores its state from the changelog.",
            "two instances": "they share the tasks, one is killed in a transaction, the other takes over; every count once and in order.",
            "kills of the broker": "exactly_once_v2 while the broker is killed four times, barnabas under load, Apache Kafka between"
            " transactions (it may lose markers otherwise): every count once and in order.",
        },
        tests={
            "test_words_are_counted_and_the_state_comes_back": "word count",
            "test_two_instances_share_the_tasks": "two instances",
            "test_counts_are_exact_though_the_broker_is_killed": "kills of the broker",
        },
    ),
    Program(
        "Kafka Connect",
        "Java",
        f"connect-runtime, connect-file {apache_kafka.VERSION}",
        scenarios={
            "standalone": "lines of a file through a topic into another file.",
            "distributed": "two workers keep connectors, offsets and statuses in compacted topics; one is killed, the other takes over,"
            " the source exactly once.",
        },
        tests={
            "test_standalone": "standalone",
            "test_distributed_workers_take_over_from_each_other": "distributed",
        },
    ),
    Program(
        "Kafka's tools",
        "Java",
        apache_kafka.VERSION,
        scenarios={
            "same output": "topics, configs of every entity, groups of every type, transactions, features, dumps of the internal"
            " topics, console and verifiable clients: each call prints on both brokers the same.",
        },
        tests={TOOL_STEPS: "same output"},
        compares=True,
    ),
    Program(
        "schema registry",
        "",
        "not to be had: Karapace is not in the package index; Confluent's, and Apicurio's that stores in Kafka, are not on Maven Central",
    ),
)  # fmt: skip


def program_of(test: str) -> tuple[Program, str] | None:
    """The program and the scenario that a test belongs to."""
    for program in PROGRAMS:
        if test in program.tests:
            return program, program.tests[test]
    return None
