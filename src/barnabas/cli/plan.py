"""`barnabas plan`: partitions, brokers, disk, network and cost of a workload, each with its formula; `planning` does the sums."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from barnabas.cli.failure import Failure, Failures
from barnabas.cli.output import Table
from barnabas.cli.plan_measure import Speeds, measure
from barnabas.cli.plan_topic import TopicFigures, judged, topic_figures
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.cli.wording import counted
from barnabas.planning.plan import Plan
from barnabas.planning.plan import plan as planned
from barnabas.planning.quantities import parse_rate, parse_size, per_second
from barnabas.planning.rule import Rule
from barnabas.planning.workload import Workload
from barnabas.words.durations import parse_duration_ms


class Quantity(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no argument
    """An option that a parser reads."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


def _seconds(text: str) -> float:
    milliseconds = parse_duration_ms(text)
    if milliseconds <= 0:
        raise ValueError(f"'{text}' is not above 0")
    return milliseconds / 1000


_SIZE = Quantity("size", parse_size)
_BYTES_A_SECOND = Quantity("rate", lambda text: parse_rate(text, record_size=1))
_DURATION = Quantity("duration", _seconds)
_COUNT = click.IntRange(min=1)
_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.command()
@click.option("--rate", metavar="RATE", help="Of the producers together: 500MB/s, or 100000/s records.")
@click.option("--record-size", type=_SIZE, default="1kB", show_default=True, help="Before compression.")
@click.option("--compression", type=_ABOVE_0, default=1, show_default=True, help="How many times smaller.")
@click.option(
    "--retention", "retention_s", type=_DURATION, default="7d", show_default=True, help="How long records stay."
)
@click.option("-r", "--replicas", type=_COUNT, default=3, show_default=True, help="Of each partition.")
@click.option("--groups", type=click.IntRange(min=0), default=1, show_default=True, help="Groups that read everything.")
@click.option("--consumers", type=_COUNT, help="Of the largest group.  [default: as their rate asks for]")
@click.option("--consumer-rate", type=_ABOVE_0, help="Records a second that one consumer handles.")
@click.option("--growth", type=click.FloatRange(min=-99), default=0, show_default=True, help="Percent a year.")
@click.option("--years", type=click.FloatRange(min=0, max=50), default=1, show_default=True, help="The plan lasts.")
@click.option(
    "--partition-rate", type=_BYTES_A_SECOND, default="25MB/s", show_default=True, help="One partition takes."
)
@click.option("--broker-rate", type=_BYTES_A_SECOND, default="200MB/s", show_default=True,
              help="One broker takes in, or gives out.")  # fmt: skip
@click.option("--broker-disk", type=_SIZE, default="10TB", show_default=True, help="Disk of a broker.")
@click.option("--segment", type=_SIZE, default=str(1 << 30), help="segment.bytes of the topic.  [default: 1 GiB]")
@click.option("--price", type=click.FloatRange(min=0), default=0.02, show_default=True, help="A GB of disk a month.")
@click.option("--nodes", "brokers", type=_COUNT, help="Brokers that there are.  [default: as many as needed]")
@click.option(
    "--measure", "is_measured", is_flag=True, help="Measure the rates of a partition and a consumer: a short load."
)
@click.option("--measure-time", type=click.FloatRange(min=0.1, max=600), default=5, show_default=True,
              help="Seconds of that load.")  # fmt: skip
@click.option(
    "--topic", help="Take rate, size and settings from this topic, and judge it.", shell_complete=complete_topics
)
@click.option(
    "--window",
    "window_s",
    type=_DURATION,
    default="1h",
    show_default=True,
    help="The topic's rate is that of this time.",
)
@session_options
def plan(
    session: Session,
    rate: str | None,
    record_size: float,
    is_measured: bool,
    measure_time: float,
    topic: str | None,
    window_s: float,
    **figures: Any,
) -> None:
    """Say how many partitions and brokers a workload needs.

    \b
    barnabas plan --rate 500MB/s --consumers 10
    barnabas plan --rate 100000/s --consumer-rate 10000

    Each number comes with its formula and the rule behind it. It asks a cluster only with --measure
    or --topic.
    """
    context = click.get_current_context()
    given = {name for name in figures if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    is_sized = context.get_parameter_source("record_size") is ParameterSource.COMMANDLINE
    existing = None if topic is None else _existing(session, topic, window_s, figures, given)
    if existing is not None and not is_sized:
        record_size = existing.record_size
    produced = _produced(rate, record_size, existing)
    speeds = None
    if is_measured:
        size = max(1, round(record_size))
        speeds = measure(session, record_size=size, replicas=figures["replicas"], seconds=measure_time)
        figures |= {name: getattr(speeds, name) for name in {"partition_rate", "consumer_rate"} - given}
    workload = Workload(produced, record_size, **figures)
    _show(session, workload, planned(workload), speeds, existing)


def _existing(session: Session, topic: str, window_s: float, figures: dict[str, Any], given: set[str]) -> TopicFigures:
    """Return a topic's figures; they replace the defaults among the others.

    Raises:
        Failure: the topic says too little.
    """
    with session.admin() as admin:
        found = topic_figures(admin, topic, window_ms=round(window_s * 1000), now_ms=time.time_ns() // 1_000_000)
    if found.retention_s is None and "retention_s" not in given:
        raise Failure(f"topic {topic} keeps records for ever", "--retention says how many days to plan for")
    figures |= {name: getattr(found, name) for name in {"retention_s", "replicas", "segment", "brokers"} - given}
    return found


def _produced(rate: str | None, record_size: float, existing: TopicFigures | None) -> float:
    if rate is None and existing is not None:
        return existing.rate
    if rate is None:
        raise click.UsageError("--rate is missing: write 500MB/s, or 100000/s for records; or name a --topic")
    try:
        return parse_rate(rate, record_size)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from None


def _show(
    session: Session, workload: Workload, found: Plan, speeds: Speeds | None, existing: TopicFigures | None
) -> None:
    """Print a plan.

    Raises:
        Failures: it cannot be met.
    """
    needs = Table(
        ("NEED", "VALUE", "FORMULA", "SOURCE"),
        [(each.name, each.shown, each.formula, each.source) for each in found.figures],
        hidden_first=("SOURCE",),
        below=("FORMULA", "SOURCE"),
    )
    chosen = {"partitions": found.choice.partitions, "brokers": found.brokers}
    rules = {"partitions": found.partition_rules, "brokers": found.broker_rules}
    data: dict[str, object] = {
        "figures": [each._asdict() for each in found.figures],
        "rules": {
            noun: [{**rule._asdict(), "kind": rule.kind.value, "verdict": rule.verdict(chosen[noun])} for rule in each]
            for noun, each in rules.items()
        },
        "reason": found.choice.reason,
        "shortages": [each._asdict() for each in found.shortages],
    }
    if speeds is not None:
        data["measured"] = speeds._asdict()
    first = _measured(speeds)
    if existing is not None:
        verdicts = judged(existing, workload, found)
        data["topic"] = {**existing._asdict(), "verdicts": verdicts.objects()}
        first.append(verdicts)
    session.output.show(data, *first, needs, *(_rules(noun, each, chosen[noun]) for noun, each in rules.items()))
    if not session.output.is_json:
        click.echo(f"\n{found.choice.partitions:,} partitions: {found.choice.reason}.")
    if found.shortages:
        raise Failures([Failure(f"the plan cannot be met: {each.problem}", each.change) for each in found.shortages])


def _measured(speeds: Speeds | None) -> list[Table]:
    if speeds is None:
        return []
    rows = [
        ("one partition", per_second(speeds.partition_rate), f"acks=all, {counted(speeds.replicas, 'replica')}"),
        ("one consumer", f"{speeds.consumer_rate:,.0f}/s", "reads only: give --consumer-rate if yours works longer"),
    ]
    return [Table(("MEASURED", "RATE", "HOW"), rows, below=("HOW",))]


def _rules(noun: str, rules: Sequence[Rule], chosen: int) -> Table:
    """Return the rules for a number that the plan took."""
    rows = []
    for rule in rules:
        gives = f"{rule.low:,}" if rule.low == rule.high else f"{rule.low:,}…{rule.high:,}"
        rows.append((rule.name, gives, rule.kind.value, rule.verdict(chosen), rule.formula, rule.source))
    return Table(
        (f"RULE-FOR-{noun.upper()}", noun.upper(), "USE", f"SAYS-OF-{chosen}", "FORMULA", "SOURCE"),
        rows,
        hidden_first=("USE", "SOURCE"),
        below=("FORMULA", "SOURCE"),
    )
