"""`barnabas generate`: made-up records into a topic, at a rate, with few keys that most records have, and with late records.

Keys and values come from the seed alone, so a run can be repeated; times are those of the run. A late record has a time before now, and is
in the log where it was sent: what a consumer with watermarks must cope with.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import click

from barnabas.cli.failure import Failure
from barnabas.cli.generated_values import ORDERS, Maker, maker
from barnabas.cli.named_topics import existing_topic
from barnabas.cli.record_reader import Given
from barnabas.cli.session import Session, complete_topics, session_options_of_produce
from barnabas.cli.termination import ends_cleanly
from barnabas.words.durations import parse_duration_ms
from barnabas.words.printable import printable

_RATE = re.compile(r"(\d+(?:\.\d+)?)(?:/([smh]))?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%?")


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.option("-n", "--count", "--num", "records", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option("--rate", metavar="N/s", help="Records a second, a minute (N/m) or an hour (N/h).  [default: no limit]")
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON Schema or Avro of the values, which are JSON.  [default: of orders]",
)
@click.option(
    "--keys", type=click.IntRange(min=0), default=1000, show_default=True, help="Different keys; 0 is no key."
)
@click.option(
    "--skew",
    type=click.FloatRange(min=0, max=10),
    default=0.0,
    show_default=True,
    metavar="S",
    help="Key number i has a weight of 1/i^S (Zipf): 0 is even, 1 as words of a language.",
)
@click.option("--late", metavar="PERCENT", default="0", show_default=True, help="How many records are late.")
@click.option("--late-by", metavar="DURATION", default="1h", show_default=True, help="The most that one is late.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="The same makes the same records.")
@click.option("-X", "extra", multiple=True, metavar="PROP=VALUE", help="A librdkafka setting; repeat.")
@session_options_of_produce
def generate(
    session: Session,
    topic: str,
    records: int | None,
    rate: str | None,
    schema_file: Path | None,
    keys: int,
    skew: float,
    late: str,
    late_by: str,
    seed: int,
    extra: tuple[str, ...],
) -> None:
    """Produce made-up records into TOPIC.

    \b
    barnabas generate orders --rate 100/s --skew 1 --late 5%
    barnabas generate orders -n 1000 --schema order.avsc
    """
    try:
        every_s = 0.0 if rate is None else 1 / _per_second(rate)
        share, late_ms = _share(late), parse_duration_ms(late_by)
        make = maker(ORDERS) if schema_file is None else _maker(schema_file)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    # If the library is missing, that is said before a broker is asked.
    kind: Any = import_module("barnabas.cli.producer_run").ProducerRun
    with session.admin() as admin:
        existing_topic(admin, topic, may_create=False)
    run = kind(session, topic, extra, {"acks": "all", "partitioner": "murmur2_random"})
    made = generated(make, random.Random(seed), keys, skew, share, late_ms, lambda: time.time_ns() // 1_000_000)
    ended: int | None = None
    try:
        with ends_cleanly():
            run.send_all(_paced(made, records, every_s, time.monotonic, time.sleep))
            run.finish()
    except KeyboardInterrupt:  # the usual end without a count
        run.end()
    except SystemExit as signalled:
        ended = int(signalled.code or 0)
        run.end()
    run.report()
    if ended is not None:
        raise click.exceptions.Exit(ended)


def generated(
    make: Maker,
    luck: random.Random,
    keys: int,
    skew: float,
    share: float,
    late_ms: int,
    now_ms: Callable[[], int],
) -> Iterator[Given]:
    """Yield records without end.

    Args:
        keys: how many there are; 0 for records without a key.
        skew: the exponent of Zipf's law.
        share: of late records, 0 to 1.
    """
    names = [f"key-{number}".encode() for number in range(1, keys + 1)]
    weights = list(accumulate(1 / number**skew for number in range(1, keys + 1)))
    while True:
        now = now_ms()
        key = luck.choices(names, cum_weights=weights)[0] if names else None
        at = now - luck.randint(1, max(late_ms, 1)) if luck.random() < share else now
        value = json.dumps(make(luck, at), ensure_ascii=False).encode()
        yield Given(value, key, timestamp=at)


def _paced(
    records: Iterator[Given],
    most: int | None,
    every_s: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Given]:
    began = clock()
    for number in count() if most is None else range(most):
        if every_s and (early := began + number * every_s - clock()) > 0:
            sleep(early)
        yield next(records)


def _per_second(text: str) -> float:
    found = _RATE.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"--rate: '{printable(text)}' is not a rate such as 100/s, 20/m or 5/h")
    return float(found[1]) / _SECONDS[found[2]]


def _share(text: str) -> float:
    found = _PERCENT.fullmatch(text)
    if found is None or float(found[1]) > 100:
        raise ValueError(f"--late: '{printable(text)}' is not a percentage from 0% to 100%")
    return float(found[1]) / 100


def _maker(path: Path) -> Maker:
    try:
        return maker(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = "it is not JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else str(error)
        raise Failure(f"{printable(str(path))}: {why}", "--schema takes JSON Schema or Avro, as JSON") from None
