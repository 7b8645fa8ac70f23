"""The public rules for a number of partitions, side by side, and the number that a plan takes.

They contradict each other. Those that follow from a rate or from a number of readers are needed: with fewer partitions the stream does
not fit. The plan takes the largest of these and rounds it up, so that each consumer has as many partitions as the others. The ranges
are starting points for a plan without a rate; the ceilings only forbid.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.planning.quantities import per_second
from barnabas.planning.rule import Kind, Rule
from barnabas.planning.sums import at_least, rounded_up
from barnabas.planning.workload import Workload

_SLOW_PARTITION, _FAST_PARTITION = 10e6, 50e6
REPLICAS_OF_A_BROKER = 4000
_PARTITIONS_OF_AN_OLD_CLUSTER = 1000
_RAO = "J. Rao, How to choose the number of topics/partitions (2015)"
_BROKER = "J. Rao, Apache Kafka Supports 200K Partitions Per Cluster (2018)"


def partition_rules(workload: Workload, brokers: int) -> list[Rule]:
    """Return every rule that the workload has figures for."""
    w = workload
    stream = per_second(w.stream)
    target = at_least(w.stream, w.partition_rate)
    slow, fast = (at_least(w.stream, each) for each in (_SLOW_PARTITION, _FAST_PARTITION))
    span = f"{per_second(_FAST_PARTITION)} … {per_second(_SLOW_PARTITION)}"
    rules = [
        Rule("target throughput", Kind.NEED, f"{stream} ÷ {per_second(w.partition_rate)} a partition", target, target,
             f"{_RAO}: target ÷ producer"),
        Rule("slow and fast partitions", Kind.RANGE, f"{stream} ÷ {span}", fast, slow,
             "sequential writes of one partition on an SSD"),
    ]  # fmt: skip
    if w.consumer_rate is not None:
        readers = at_least(w.records, w.consumer_rate)
        formula = f"{w.records:,.0f}/s ÷ {w.consumer_rate:,.0f}/s a consumer"
        rules.append(Rule("consumers' speed", Kind.NEED, formula, readers, readers, f"{_RAO}: target ÷ consumer"))
    c, r = w.members, w.replicas
    ceiling = REPLICAS_OF_A_BROKER * brokers // r
    return [
        *rules,
        Rule("one for each consumer", Kind.NEED, f"{c:,} of the largest group", c, c,
             "Kafka's documentation: a partition has one consumer of a group"),
        Rule("3 to 6 times the consumers", Kind.RANGE, f"3 × {c:,} … 6 × {c:,}", 3 * c, 6 * c, "rule of thumb of operators"),
        Rule("10 to 20 a broker and topic", Kind.RANGE, f"10 × {brokers:,} … 20 × {brokers:,}", 10 * brokers, 20 * brokers,
             "rule of thumb of operators"),
        Rule("1,000 in a cluster", Kind.RANGE, "1 … 1,000", 1, _PARTITIONS_OF_AN_OLD_CLUSTER,
             "rule of thumb from clusters with ZooKeeper; KIP-500 removed the cause"),
        Rule("2,000 to 4,000 replicas a broker", Kind.CEILING, f"2,000 … 4,000 × {brokers:,} ÷ {r:,} replicas", ceiling // 2,
             ceiling, _BROKER),
    ]  # fmt: skip


class Choice(NamedTuple):
    """A number of partitions and why."""

    partitions: int
    formula: str
    reason: str


def choose(rules: list[Rule], consumers: int) -> Choice:
    """Return the fewest partitions that all needs allow, as a multiple of the consumers."""
    needs = [rule for rule in rules if rule.kind is Kind.NEED]
    first = max(needs, key=lambda rule: rule.low)
    partitions = rounded_up(first.low, consumers)
    formula = f"max({', '.join(f'{rule.low:,}' for rule in needs)})"
    if partitions != first.low:
        formula += f", rounded up to a multiple of {consumers:,} consumers"
    reason = (
        f"the rule “{first.name}” needs the most; more would cost files, memory and longer elections. "
        "The ranges serve a plan without a rate, and growth is in the rate"
    )
    return Choice(partitions, formula, reason)
