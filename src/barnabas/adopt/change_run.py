"""The words of `adopt next` and `adopt back`, with `--beside` and without: the lines of a run, its end, and the plan."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from barnabas.adopt.change import Act, Change, Hand, Pace, Refused, StandsStill, Step, Watch
from barnabas.adopt.planned_steps import Planned
from barnabas.cli.failure import Failure, Failures, Quiet
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session
from barnabas.words.printable import printable

__all__ = ["run_change", "say", "show_plan"]


def say(line: str) -> None:
    """Print a line of a run with its time."""
    click.echo(f"{time.strftime('%H:%M:%S')} {printable(line)}", err=True)


def run_change(
    session: Session, watch: Watch, hand: Hand, row: dict[str, object], stopped: str, remedy: str, limit_s: float
) -> None:
    """Make a change, and print a row about it.

    Args:
        row: the first columns of the result.
        stopped: how the run ended if the rest was not seen.
        remedy: what helps then.
        limit_s: for each step, in seconds.

    Raises:
        Failures: it was refused.
        Failure: it stands still.
    """
    began = time.monotonic()
    change = Change(watch, hand, say=say, clock=time.monotonic, pause=time.sleep, pace=Pace(limit_s=limit_s))
    try:
        change.run()
    except Refused as refused:
        raise Failures([Failure(each) for each in refused.reasons]) from None
    except StandsStill as reason:
        raise Failure(f"{stopped}: {reason}", remedy) from None
    row |= {"CHANGED": bool(change.done), "SECONDS": round(time.monotonic() - began, 1)}
    session.output.table(tuple(row), [tuple(row.values())])


def show_plan(
    session: Session, watch: Watch, step: Step, planned: Sequence[Planned], about: dict[str, object], end: str
) -> None:
    """Print all steps, and what a run would be refused for.

    Args:
        step: what a run would do first.
        about: the nodes, for JSON.
        end: what is so if nothing is left to do.

    Raises:
        Quiet: it would be refused.
    """
    refused = step.reasons if step.act == Act.REFUSE else ()
    if step.act not in (Act.REFUSE, Act.WAIT, Act.DONE):
        refused = watch.refusals(needs_health=step.needs_health)
    steps = Table(("STEP", "WHAT", "COMMAND"), [(number, *each) for number, each in enumerate(planned, 1)])
    if step.act == Act.DONE:
        # A run would only look.
        click.echo(f"nothing to do: {end}", err=True)
        steps = steps._replace(rows=[])
    table = Table(("REFUSED-BECAUSE",), [(each,) for each in refused])
    data = {**about, "next": step.act.value, "refused": list(refused), "steps": steps.objects()}
    session.output.show_found(Found(data, [each for each in (steps, table) if each.rows]))
    if refused:
        raise Quiet
