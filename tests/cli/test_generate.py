"""`barnabas generate`: keys, lateness, pace, and a run against a broker."""

from __future__ import annotations

import json
import random
import shlex
from collections import Counter
from itertools import islice
from pathlib import Path

from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.generate import _paced, generated
from barnabas.cli.generated_values import ORDERS, maker
from barnabas.cli.record_reader import Given
from barnabas.main import command_group

NOW = 1_733_000_000_123


def records(count: int, *, seed: int = 1, keys: int = 10, skew: float = 0.0, share: float = 0.0) -> list[Given]:
    luck = random.Random(seed)
    return list(islice(generated(maker(ORDERS), luck, keys, skew, share, 1000, lambda: NOW), count))


def test_the_same_seed_makes_the_same_records() -> None:
    assert records(50) == records(50) != records(50, seed=2)


def test_keys_are_even_or_skewed() -> None:
    even = Counter(each.key for each in records(5000))
    assert len(even) == 10
    assert max(even.values()) < 1.3 * 500
    skewed = Counter(each.key for each in records(5000, skew=1.0))
    assert skewed.most_common(1)[0][0] == b"key-1"
    assert 0.3 < skewed[b"key-1"] / 5000 < 0.38, "1 / (1 + 1/2 + … + 1/10) is 0.34"
    assert {each.key for each in records(5, keys=0)} == {None}


def test_some_records_are_late() -> None:
    found = records(2000, share=0.1)
    late = [each for each in found if each.timestamp != NOW]
    assert 150 < len(late) < 250
    assert all(each.timestamp is not None and NOW - 1000 <= each.timestamp < NOW for each in late)
    assert all(each.timestamp == NOW for each in records(100))


def test_the_pace_is_that_of_the_rate() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    assert len(list(_paced(iter(records(5)), 3, 0.5, lambda: now[0], sleep))) == 3
    assert slept == [0.5, 0.5]


def run(broker: barnabas.Broker, line: str) -> Result:
    environment = {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    return CliRunner().invoke(command_group(), shlex.split(line), env=environment, prog_name="barnabas")


def test_into_a_topic(tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "o", "fields": [{"name": "qty", "type": "int"}]}))
    with barnabas.Broker() as broker:
        broker.create_topic("orders")
        made = run(broker, f"generate orders -n 20 --rate 10000/s --late 50% --schema {schema}")
        assert made.output == "produced 20 records (orders-0: 20)\n"
        lines = run(broker, "consume orders -e -f json").output.splitlines()
        assert [set(json.loads(json.loads(line)["value"])) for line in lines] == [{"qty"}] * 20
        assert "did you mean orders?" in run(broker, "generate oders -n 1").stderr
        schema.write_text("{")
        assert run(broker, f"generate orders -n 1 --schema {schema}").stderr == (
            f"error: {schema}: it is not JSON (--schema takes JSON Schema or Avro, as JSON)\n"
        )
