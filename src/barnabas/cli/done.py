"""The result of a command that changes something, as a value: what it did, what it could not do, and what one should know.

A function of the command's module returns it, with `dry_run` for a preview. The command prints it; the console shows it on a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from barnabas.cli.failure import failure_of, report_failures
from barnabas.cli.output import Found, Output
from barnabas.protocol.errors import KafkaError


class Done(NamedTuple):
    """A result.

    Attributes:
        found: a row for each thing that was changed, or would be.
        failures: what could not be changed, each with its name for people.
        notes: sentences under the result.
    """

    found: Found
    failures: Sequence[tuple[str, KafkaError]] = ()
    notes: Sequence[str] = ()

    def show(self, output: Output) -> None:
        """Print the result.

        Raises:
            Failures: something could not be changed; the rest was.
        """
        if any(table.rows for table in self.found.tables):
            output.show_found(self.found)
        for note in self.notes:
            click.echo(note, err=True)
        report_failures(self.failures)

    def whole(self) -> Done:
        """Return the result if it has no failure.

        Raises:
            Failure: the first one.
        """
        for subject, error in self.failures:
            raise failure_of(error, subject)
        return self


def failed(outcomes: Sequence[tuple[str, object]]) -> list[tuple[str, KafkaError]]:
    """Return the outcomes that are errors."""
    return [(subject, outcome) for subject, outcome in outcomes if isinstance(outcome, KafkaError)]
