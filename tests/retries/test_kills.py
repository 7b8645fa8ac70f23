"""A consumer that is killed loses no record and doubles none.

The default suite kills it in this process, at every moment between the calls of its producer. `make long` kills processes by SIGKILL at
any time, and starts the next one at once.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from barnabas.embedded.broker import Broker
from barnabas.retries import Record, RetryingConsumer
from barnabas.retries.headers import read_failure
from tests.retries.bank import POLICY, charge
from tests.retries.mortal import Killed, Mortal
from tests.retries.records import committed, values, write


def attempts(record: Record) -> int | None:
    failure = read_failure(record.headers)
    return None if failure is None else failure.attempts


def check(bootstrap: str, written: list[tuple[str | None, str]], *, in_order: bool, partitions: int = 1) -> None:
    everything = [value for _, value in written]
    dead = [value for value in everything if value.endswith(":3")]
    assert Counter(values(committed(bootstrap, "orders.dlq", partitions))) == Counter(dead)
    bills = committed(bootstrap, "bills", partitions)
    assert Counter(values(bills)) == Counter(everything) - Counter(dead)
    for number, topic in enumerate(POLICY.retry_topics, 1):
        failed = values(each for each in committed(bootstrap, topic, partitions) if attempts(each) == number)
        expected = {value for value in everything if int(value.partition(":")[2]) >= number}
        # A record that is held back may be moved on, and is there more than once.
        assert set(failed) == expected if in_order else sorted(failed) == sorted(expected)
    if in_order:
        for key in {key for key, _ in written}:
            numbers = [
                int(each.partition(":")[0]) for each in values(each for each in bills if each.key == str(key).encode())
            ]
            assert numbers == sorted(numbers)


def all_done(bootstrap: str, written: list[tuple[str | None, str]], partitions: int = 1) -> bool:
    done = sum(len(committed(bootstrap, topic, partitions)) for topic in ("bills", "orders.dlq"))
    return done >= len(written)


# After each call of the first transaction, and once in a later one: nothing happens between a call and the next one. A death in a
# transaction costs its successor a second.
QUICK = (1, 3, 5, 11, 13, 24)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hold_keys", "moments"),
    [
        pytest.param(True, QUICK, id="quick"),
        pytest.param(True, range(40), id="hold-keys", marks=pytest.mark.long),
        pytest.param(False, range(40), id="overtaking", marks=pytest.mark.long),
    ],
)
def test_a_consumer_dies_between_any_two_calls(barnabas: Broker, hold_keys: bool, moments: Sequence[int]) -> None:
    bootstrap = barnabas.bootstrap_servers
    barnabas.create_topic("orders", partitions=1)
    barnabas.create_topic("bills", partitions=1)
    settings = {"bootstrap.servers": bootstrap, "group.id": "billing"}
    written: list[tuple[str | None, str]] = [("b", "0:0")]
    write(bootstrap, "orders", written)
    # With a committed position the next consumers begin at once.
    with RetryingConsumer(settings, ["orders"], POLICY, hold_keys=hold_keys, transactional_id="billing") as first:
        while not first.step(charge, 0.1):
            pass
    written += [("a", "1:3"), ("a", "2:1"), ("b", "3:0")]
    write(bootstrap, "orders", written[1:])
    deaths: list[str] = []
    for moment in (*moments, None):

        def producer(wanted: dict[str, str], moment: int | None = moment) -> Mortal:
            return Mortal(wanted, moment)

        consumer = None
        try:
            consumer = RetryingConsumer(
                settings,
                ["orders"],
                POLICY,
                hold_keys=hold_keys,
                transactional_id="billing",
                producer=producer,  # type: ignore[arg-type]
            )
            for _ in range(100):
                if not consumer.step(charge, 0.1) and all_done(bootstrap, written):
                    break
        except Killed as death:
            deaths.append(str(death))
        finally:
            if consumer is not None:
                consumer.close()
    assert {f"after {name}" for name in Mortal.CALLS[:-1]} <= set(deaths)
    check(bootstrap, written, in_order=hold_keys)
    failures = [read_failure(each.headers) for each in committed(bootstrap, "orders.dlq")]
    assert [each and (each.offset, each.attempts) for each in failures] == [(1, 3)]


@pytest.mark.long
@pytest.mark.parametrize("hold_keys", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_processes_are_killed(barnabas: Broker, hold_keys: bool, seed: int) -> None:
    bootstrap = barnabas.bootstrap_servers
    chance = random.Random(seed)
    for topic in ("orders", "bills"):
        barnabas.create_topic(topic, partitions=2)
    written: list[tuple[str | None, str]] = []
    for number in range(3000):
        failures = chance.choice((0, 0, 0, 0, 0, 0, 1, 2, 3))
        written.append((str(number % 40), f"{number}:{failures}"))
    for partition in (0, 1):
        write(bootstrap, "orders", written[partition::2], partition)
    command = [sys.executable, "-m", "tests.retries.bank", bootstrap, *(["--hold-keys"] if hold_keys else [])]
    for _ in range(12):
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        time.sleep(2 * chance.random())
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    last = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 300
        while not all_done(bootstrap, written, 2) and time.monotonic() < deadline:
            time.sleep(1)
    finally:
        last.kill()
        last.wait()
    check(bootstrap, written, in_order=hold_keys, partitions=2)
