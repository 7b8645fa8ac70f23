"""SIGTERM and SIGHUP end a command after its clean-up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaError

from barnabas.cli.termination import ends_cleanly


@pytest.fixture(autouse=True)
def handlers_of_a_terminal() -> Iterator[None]:
    """The tests may run under `nohup`, or in the background: then SIGHUP and SIGINT are ignored."""
    wanted = {signal.SIGHUP: signal.SIG_DFL, signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_block_and_a_second_does_not_cut_its_clean_up(number: signal.Signals) -> None:
    steps = []

    def work() -> None:
        try:
            os.kill(os.getpid(), number)
            steps.append("the block went on")
        finally:
            os.kill(os.getpid(), number)
            steps.append("cleaned up")

    with pytest.raises(SystemExit) as caught, ends_cleanly():
        work()
    assert (caught.value.code, steps) == (128 + number, ["cleaned up"])
    with ends_cleanly():
        os.kill(os.getpid(), number)  # as `timeout` does, a moment later
    assert signal.getsignal(number) is signal.SIG_IGN


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with ends_cleanly():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_restored_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with suppress(ValueError), ends_cleanly():
        assert signal.getsignal(signal.SIGTERM) is not before
        raise ValueError
    assert signal.getsignal(signal.SIGTERM) is before


def poll_for_ever(consumer: Consumer) -> None:
    while True:
        consumer.poll(0.2)


def test_what_a_callback_of_the_library_loses_is_raised_after_all() -> None:
    """confluent-kafka ends its call with a SystemError when a signal comes while its callback runs."""
    times = iter(range(3))

    def interrupt(error: KafkaError) -> None:
        if next(times, None) == 0:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "shop", "error_cb": interrupt, "log_level": 0}
    consumer = Consumer(settings)
    try:
        with pytest.raises(KeyboardInterrupt), ends_cleanly():
            poll_for_ever(consumer)
    finally:
        consumer.close()
        signal.signal(signal.SIGINT, before)


def test_a_system_error_without_a_signal_stays_one() -> None:
    with pytest.raises(SystemError, match="a bug"), ends_cleanly():
        raise SystemError("a bug")
