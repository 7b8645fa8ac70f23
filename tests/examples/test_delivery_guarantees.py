"""The three delivery guarantees, shown by killing the consumer at the worst moment.

    guarantee       worst moment                                       what the table promises      what is seen
    at most once    after the commit, while the record is processed    message loss                 exactly that record is missing
    at least once   after the processing, before the commit            duplicate processing         exactly that record is twice
    exactly once    at each step of the transaction                    neither                      every record once

The consumer is a process of its own and dies of SIGKILL, from inside, at a named point; a second one finishes the work.
"""

from __future__ import annotations

import pytest

from tests.examples.stage import ORDERS, PATIENCE_SECONDS, VICTIM, Stage

pytestmark = pytest.mark.timeout(5 * PATIENCE_SECONDS)


@pytest.mark.slow
def test_at_most_once_loses_what_was_being_processed(stage: Stage) -> None:
    deadly = f"""
def process(order):
    if order == {VICTIM!r}:
        die()
    print(order, file=book)
example.consume({stage.bootstrap!r}, {stage.orders!r}, process, enough, settings)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("at_most_once", deadly, healthy, ORDERS[-1])
    assert stage.processed() == [order for order in ORDERS if order != VICTIM]


@pytest.mark.slow
def test_at_least_once_repeats_what_was_not_committed(stage: Stage) -> None:
    deadly = f"""
def process(order):
    print(order, file=book)
    if order == {VICTIM!r}:
        die()
example.consume({stage.bootstrap!r}, {stage.orders!r}, process, enough, settings)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("at_least_once", deadly, healthy, ORDERS[-1])
    position = ORDERS.index(VICTIM)
    assert stage.processed() == [*ORDERS[: position + 1], *ORDERS[position:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "left_behind"), [("written", [VICTIM]), ("offset sent", [VICTIM]), ("committed", [])]
)
def test_exactly_once_survives_every_moment(stage: Stage, moment: str, left_behind: list[str]) -> None:
    deadly = f"""
current = None
def invoice(order):
    global current
    current = order
    return "invoice-" + order
def reached(step):
    if (current, step) == ({VICTIM!r}, {moment!r}):
        die()
    if step == "committed":
        print(current, file=book)
example.transform({stage.bootstrap!r}, {stage.orders!r}, {stage.invoices!r}, invoice, enough, settings, reached)
"""
    healthy = deadly.replace("die()", "pass")
    stage.run_to_death_then_to_the_end("exactly_once", deadly, healthy, ORDERS[-1])
    invoices = [f"invoice-{order}" for order in ORDERS]
    assert stage.read_invoices("read_committed", invoices[-1]) == invoices
    # The dead instance's record is in the log, and only those see it who ask for uncommitted records.
    position = ORDERS.index(VICTIM)
    aborted = [f"invoice-{order}" for order in left_behind]
    uncommitted = stage.read_invoices("read_uncommitted", invoices[-1])
    assert uncommitted == [*invoices[:position], *aborted, *invoices[position:]]
