"""`barnabas cluster throttle`, and `--throttle` of the commands that move: how much of the network moves of replicas take. KIP-73."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicPartition
from barnabas.client.replication_throttle import Moving, Throttle
from barnabas.planning.quantities import parse_size
from barnabas.protocol.errors import KafkaError

_BARE_MIN = 1024
"""A smaller number without a unit is most often meant as megabytes: at so few bytes a second no move ends."""


@click.command()
@click.argument("rate", required=False, metavar="[RATE|off]")
@session_options
def throttle(session: Session, rate: str | None) -> None:
    """Throttle the moves of replicas that go on now to a rate of each broker, or show the throttle.

    RATE is bytes a second, as 500000 or 20MB. It holds for the partitions that move when the command begins, until `off` removes it.
    Replicas in sync are never throttled.

    \b
    barnabas cluster throttle 20MB
    """
    with session.admin() as admin:
        failures: list[Failure] = []
        if rate == "off":
            failures = _failures(admin.remove_throttle())
        elif rate is not None:
            failures = _failures(admin.set_throttle(Rate().convert(rate, None, None), _moving(admin)))
        session.output.show_found(_found(admin.describe_throttle()))
    if failures:
        raise Failures(failures)


def _moving(admin: Admin) -> dict[TopicPartition, Moving]:
    """Return the partitions that move.

    Raises:
        Failure: none does.
    """
    moving = admin.list_reassignments()
    if not moving:
        raise Failure(
            "no replicas are being moved, so nothing would be throttled",
            "begin a move first; it goes on when its command is interrupted",
        )
    return {at: Moving(move.before, move.adding) for at, move in moving.items()}


class Rate(click.ParamType[int]):
    """Bytes a second, as `500000`, `20MB` or `20MB/s`; a small number needs its unit."""

    name = "rate"

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).removesuffix("/s")
        try:
            rate = max(1, int(parse_size(text)))
        except ValueError as error:
            self.fail(str(error), parameter, context)
        if rate < _BARE_MIN and text[-1].isdigit():
            self.fail(
                f"{text} is {text} bytes a second: write {text}MB, or {text}B if you mean that", parameter, context
            )
        return rate


@contextmanager
def throttled(admin: Admin, rate: int | None, moves: Mapping[TopicPartition, Moving]) -> Iterator[None]:
    """Throttle these moves while the block runs.

    Raises:
        Failures: the throttle cannot be set, or removed.
    """
    if rate is None or not moves:
        yield
        return
    if failures := _failures(admin.set_throttle(rate, moves)):
        raise Failures(failures)
    try:
        yield
    except BaseException:
        click.echo("the throttle stays: `barnabas cluster throttle off` removes it", err=True)
        raise
    if failures := _failures(admin.remove_throttle()):
        raise Failures(failures)


def _found(throttle: Throttle) -> Found:
    rates = Table(
        ("BROKER", "LEADER-RATE", "FOLLOWER-RATE"), [(broker, *each) for broker, each in sorted(throttle.rates.items())]
    )
    replicas = Table(
        ("TOPIC", "LEADERS", "FOLLOWERS"), [(topic, *each) for topic, each in sorted(throttle.replicas.items())]
    )
    return Found(
        {"brokers": rates.objects(), "topics": replicas.objects()}, [rates, *([replicas] if throttle.replicas else [])]
    )


def _failures(outcomes: dict[ConfigResource, KafkaError | None]) -> list[Failure]:
    return [
        failure_of(error, f"{'broker' if resource.type is ResourceType.BROKER else 'topic'} {resource.name}")
        for resource, error in outcomes.items()
        if error is not None
    ]
