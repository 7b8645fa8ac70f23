"""A plan: the figures that a workload needs, each with its formula and its source, and what cannot be met."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.planning.broker_rules import Load, broker_rules, load_of
from barnabas.planning.partition_rules import Choice, choose, partition_rules
from barnabas.planning.quantities import many, per_second, size
from barnabas.planning.rule import Kind, Rule
from barnabas.planning.shortages import Shortage, shortages
from barnabas.planning.sums import DAY_S, monthly_cost, together
from barnabas.planning.workload import Workload


class Figure(NamedTuple):
    """One number of a plan.

    Attributes:
        value: in `unit`.
        shown: the value in words.
    """

    name: str
    value: float
    unit: str
    shown: str
    formula: str
    source: str


class Plan(NamedTuple):
    """The needs of a workload.

    Attributes:
        shortages: empty if the plan can be met.
    """

    figures: list[Figure]
    choice: Choice
    partition_rules: list[Rule]
    broker_rules: list[Rule]
    brokers: int
    shortages: list[Shortage]


def plan(workload: Workload) -> Plan:
    """Return the needs of a workload."""
    w = workload
    # No rule that the choice follows depends on the number of brokers, which depends on the choice.
    choice = choose(partition_rules(w, 1), w.members)
    load = load_of(w, choice.partitions)
    of_brokers = broker_rules(w, load)
    needs = [rule for rule in of_brokers if rule.kind is Kind.NEED]
    needed = max(rule.low for rule in needs)
    brokers = w.brokers or needed
    formula = f"max({', '.join(f'{rule.name} {rule.low:,}' for rule in needs)})"
    capacity, share = together(choice.partitions, w.partition_rate, brokers)
    figures = [
        *_stream(w),
        Figure("partitions", choice.partitions, "", f"{choice.partitions:,}", choice.formula, "the rules for partitions"),
        Figure("brokers", needed, "", f"{needed:,}", formula, "the rules for brokers"),
        Figure("capacity", capacity, "bytes/s", per_second(capacity),
               f"{choice.partitions:,} × {per_second(w.partition_rate)} a partition, {per_second(share)} a broker",
               "what the partitions can take together, if keys spread evenly"),
        *_disk(w, choice.partitions, load, brokers),
        *_network(w, load, brokers),
        Figure("cost", monthly_cost(load.kept, w.price), "a month", f"{monthly_cost(load.kept, w.price):,.2f} a month",
               f"{size(load.kept)} × {w.price:g} a GB-month", "price of disk: about $0.02 a GB-month"),
    ]  # fmt: skip
    return Plan(figures, choice, partition_rules(w, brokers), of_brokers, needed, shortages(w, needs))


def _stream(w: Workload) -> list[Figure]:
    growth = f" × {1 + w.growth / 100:g} ^ {w.years:g} years" if w.growth else ""
    smaller = f" ÷ {w.compression:g} (compression)" if w.compression != 1 else ""
    return [
        Figure("stream", w.stream, "bytes/s", per_second(w.stream), f"{per_second(w.rate)}{growth}{smaller}",
               "growth compounds; batches stay compressed on the wire and on disk"),
        Figure("records", w.records, "records/s", f"{w.records:,.0f}/s",
               f"{per_second(w.produced)} ÷ {size(w.record_size)} a record", "before compression"),
    ]  # fmt: skip


def _disk(w: Workload, partitions: int, load: Load, brokers: int) -> list[Figure]:
    formula = (
        f"{per_second(w.stream)} × {many(w.retention_s / DAY_S, 'day')} + {partitions:,} × {size(w.segment)} a segment"
    )
    return [
        Figure("disk of a replica", load.replica, "bytes", size(load.replica), formula,
               "Kafka's documentation: retention.ms deletes whole segments"),
        Figure("disk", load.kept, "bytes", size(load.kept), f"{size(load.replica)} × {many(w.replicas, 'replica')}",
               "Kafka's documentation: each replica keeps everything"),
        Figure("disk of a broker", load.kept / brokers, "bytes", size(load.kept / brokers),
               f"{size(load.kept)} ÷ {many(brokers, 'broker')}", "an even spread"),
    ]  # fmt: skip


def _network(w: Workload, load: Load, brokers: int) -> list[Figure]:
    stream = per_second(w.stream)
    return [
        Figure(name, total / brokers, "bytes/s", per_second(total / brokers), f"{stream} × {factor} ÷ {many(brokers, 'broker')}",
               source)
        for name, total, factor, source in (
            ("network into a broker", load.written, many(w.replicas, 'replica'), "each replica takes the stream once"),
            ("network out of a broker", load.read, f"({many(w.replicas - 1, 'follower')} + {many(w.groups, 'group')})",
             "each follower and each group reads the stream once"),
        )
    ]  # fmt: skip
