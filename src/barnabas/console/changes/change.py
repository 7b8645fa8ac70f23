"""A change of a cluster as a value: a form, and a function that plans what it would do.

    fields of the form ── plan(admin, given, now) ──> Planned: preview, name to type, carry_out(admin, given) ──> Done

Nothing is changed before `carry_out`. The plan is made twice, for the preview and before it is carried out. If the second one is about
something else (`basis`), people look at a new preview first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.done import Done
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.changes.given import Given
from barnabas.console.page import Field
from barnabas.decoding.masks import Masks


class Planned(NamedTuple):
    """A change that is not made yet.

    Attributes:
        does: what it does, as the head of a sentence: `Delete topic orders`.
        on: on what, for the audit log: `topic orders`.
        preview: what the command shows in a dry run.
        carry_out: makes the change; the fields have `asks` too.
        before: facts about what is changed, as the command's other tables have them; by name and caption.
        destroys: the name to type; None if nothing is lost.
        asks: fields that are filled in under the preview.
        fixed: fields that the preview has decided, such as the offsets of a time.
        basis: what must still be so when the change is carried out; the preview's rows if it is None.
        after: the page to go to afterwards, and its query.
        command: a line to type that does the same; empty without one.
    """

    does: str
    on: str
    preview: Done
    carry_out: Callable[[Admin, Given], Done]
    before: Sequence[tuple[str, str, Done]] = ()
    destroys: str | None = None
    asks: Sequence[Field] = ()
    fixed: Mapping[str, str] = {}
    basis: object = None
    after: tuple[str, Mapping[str, str]] = ("", {})
    command: str = ""


Plan = Callable[[Admin, Given, int], Planned]
"""Asks the cluster what a form would change; the number is the time in epoch milliseconds.

Raises:
    BadForm: a field cannot be used.
    Failure, KafkaError: the cluster rejects it, or does not answer.
"""


Refuse = Callable[[Masks, Given], None]
"""Looks whether a form would tell what the console masks.

Raises:
    BadForm: it would.
"""


class Filled(NamedTuple):
    """A form that is filled in before anybody sees it.

    Attributes:
        notes: sentences without their full stops.
    """

    texts: Mapping[str, str]
    notes: Sequence[str]


Fill = Callable[[Admin, Asked], Filled]
"""Fills a form in from the cluster.

Raises:
    BadQuery: the address does not name what it is filled from.
    KafkaError: the cluster does not answer.
"""


class Change(NamedTuple):
    """A change that the console offers.

    Attributes:
        path: under `/clusters/NAME/change/`.
        also: other pages that lead to it, each with its `subject`.
        page: the path of the page that leads to it.
        carries: parameters of the page that the form's address gets; a page without them does not lead to it.
        fill: fills the form in; without it the address does.
        refuse: is asked before the plan; None if nothing that is masked comes into it.
        reads_records: it takes as long as a search.
        file_bytes_max: how large a file of the form may be; 0 if it has none.
        subject: the parameter of that page with the name of the thing, and the field that gets it; None if the page is about many.
    """

    path: str
    title: str
    page: str
    subject: tuple[str, str] | None
    fields: Sequence[Field]
    plan: Plan
    also: Mapping[str, tuple[str, str]] = {}
    refuse: Refuse | None = None
    reads_records: bool = False
    file_bytes_max: int = 0
    carries: Sequence[str] = ()
    fill: Fill | None = None

    def subject_on(self, page: str) -> tuple[str, str] | None:
        """Return the `subject` on a page that leads to the change."""
        return self.subject if page == self.page else self.also.get(page)
