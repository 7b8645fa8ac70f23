"""From a form to a change: preview, name to type, audit log, result. One mechanism for everything in `changes.table`.

GET                                      the form, with a token
POST fields + token                      the preview: a dry run that the cluster has checked, and a form with an id
POST fields + token + id + name typed    planned again, compared with the preview, logged, carried out, logged
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.client.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.console.asked import Asked
from barnabas.console.audit_log import AuditLog, BadAuditLog, Entry
from barnabas.console.changes.change import Change, Planned
from barnabas.console.changes.given import BadForm, Given, SentFile
from barnabas.console.form_tokens import FormTokens, Previews, Taken, hash_of
from barnabas.console.kept_files import KEPT_S, KeptFiles
from barnabas.console.page import Field, Link, Section, section, sentence_of
from barnabas.console.search.query import BadQuery
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable

R = TypeVar("R")

TOKEN, PREVIEW, TYPED = "token", "preview", "typed"
"""The names of the fields that are not of a change itself."""
READ_ONLY = "This console is read-only: `barnabas console --write` lets it change clusters."
_FORGED = (
    "The form has no token of this console, or an old one: the console was started again, or a login has ended."
    " Nothing was changed."
)
_GONE = "This preview was carried out before, or is older than an hour. Nothing was changed now; this is a new one."
_FILE_GONE = (
    "The file of this preview is not kept any more: it was too long ago, or others came after it. Choose the file again."
    " Nothing was changed."
)
_OTHER = "The cluster has changed since the preview. Nothing was changed now; this is a new one."


class Visitor(NamedTuple):
    """Who sends a form.

    Attributes:
        name: of the login; None on a console without logins.
        address: where the request comes from.
        secret: what other sites cannot know: the cookie of the login; empty without one.
    """

    name: str | None
    address: str | None
    secret: str


class Answer(NamedTuple):
    """The page that answers a form.

    Attributes:
        data: for programs.
        problem: a sentence above everything else.
        sections: preview or result.
        fields: to fill in.
        hidden: fields that the form sends again.
        button: None if there is no form.
        is_dangerous: the button destroys something.
        notes: sentences under the problem.
        links: below.
    """

    title: str
    status: int
    data: Mapping[str, object]
    problem: str | None = None
    sections: Sequence[Section] = ()
    fields: Sequence[Field] = ()
    hidden: Mapping[str, str] = {}
    button: str | None = None
    is_dangerous: bool = False
    notes: Sequence[str] = ()
    links: Sequence[Link] = ()


class _Refused(Exception):
    """A change that is not made, with the sentence and the status of HTTP."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


class Changing:
    """Answers forms that change clusters, and writes the audit log."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._tokens = FormTokens()
        self._previews = Previews()
        self._files = KeptFiles()

    def __repr__(self) -> str:
        return f"<Changing {self._audit!r} {self._previews!r}>"

    def form(
        self, asked: Asked, change: Change, visitor: Visitor, problem: str | None = None, status: int = 200
    ) -> Answer:
        """Return the form of a change, filled in from the address."""
        return self._form(asked, change, visitor, asked.query, problem, status)

    async def opened(self, asked: Asked, change: Change, visitor: Visitor) -> Answer:
        """Return the form of a change, filled in from the cluster if the change says so."""
        fill = change.fill
        if fill is None:
            return self.form(asked, change, visitor)
        try:
            texts, notes = await asked.cluster.search(lambda admin: fill(admin, asked))
        except BadQuery as error:
            return self.form(asked, change, visitor, str(error), 404)
        except KafkaError as error:
            return self.form(asked, change, visitor, sentence_of(error), 503)
        answer = self._form(asked, change, visitor, texts)
        return answer._replace(notes=_sentences(notes), data={**answer.data, "notes": list(notes)})

    def _form(
        self,
        asked: Asked,
        change: Change,
        visitor: Visitor,
        texts: Mapping[str, str],
        problem: str | None = None,
        status: int = 200,
    ) -> Answer:
        shown = [each for each in change.fields if each.kind != "hidden"]
        fields = [
            each if each.kind == "file" else each._replace(value=texts.get(each.name, each.value)) for each in shown
        ]
        token = self._tokens.of(visitor.secret)
        described = [
            {
                "name": each.name,
                "label": each.label,
                "kind": each.kind,
                "value": each.value,
                "required": each.is_required,
                **({"choices": [value for value, _ in each.choices]} if each.choices else {}),
            }
            for each in fields
        ]
        failure = {} if problem is None else {"error": problem}
        data = {"cluster": asked.cluster.name, "change": change.path, **failure, "fields": described, TOKEN: token}
        return Answer(
            change.title, status, data, problem, fields=fields, hidden={TOKEN: token}, button="Preview",
            links=[_back(asked, change, texts)],
        )  # fmt: skip

    async def answer(
        self,
        asked: Asked,
        change: Change,
        visitor: Visitor,
        texts: Mapping[str, str],
        files: Mapping[str, SentFile] | None = None,
    ) -> Answer:
        """Return the preview of a form, or carry it out if it is the form of a preview.

        Args:
            files: that came with the form; those of a preview are kept already.
        """
        # A browser ends each line of a form with CRLF, whatever the page has.
        texts = {name: text.replace("\r\n", "\n").replace("\r", "\n") for name, text in texts.items()}
        if not self._tokens.is_valid(visitor.secret, texts.get(TOKEN, "")):
            return self.form(asked, change, visitor, _FORGED, 403)
        of_files = [each.name for each in change.fields if each.kind == "file"]
        if PREVIEW not in texts:
            texts |= {name: self._kept(each) for name, each in (files or {}).items() if name in of_files}
        kept = {name: file for name in of_files if (file := self._files.of(texts.get(name, ""))) is not None}
        given = Given({each.name: texts[each.name] for each in change.fields if each.name in texts}, kept)
        if PREVIEW in texts and len(kept) < len(of_files):
            return self._form(asked, change, visitor, given.texts, _FILE_GONE, 409)
        answer = await self._answer(asked, change, visitor, given, texts)
        if PREVIEW not in answer.hidden:
            for name in kept:
                self._files.forget(texts[name])
        return answer

    def _kept(self, file: SentFile) -> str:
        asyncio.get_running_loop().call_later(KEPT_S + 1, self._files.forget_old)
        return self._files.keep(file)

    async def _answer(
        self, asked: Asked, change: Change, visitor: Visitor, given: Given, texts: Mapping[str, str]
    ) -> Answer:
        ask = asked.cluster.search if change.reads_records else asked.cluster.ask
        try:
            if change.refuse is not None:
                change.refuse(asked.cluster.decoder.masks, given)
            if PREVIEW in texts:
                return await ask(lambda admin: self._carried_out(admin, asked, change, visitor, given, texts))
            return await ask(
                lambda admin: self._preview(asked, change, visitor, given, _plan(admin, change, given, asked.now_ms))
            )
        except BadForm as error:
            return self._form(asked, change, visitor, given.texts, f"{_capital(str(error))}.", 400)
        except _Refused as refused:
            return self._form(asked, change, visitor, given.texts, refused.sentence, refused.status)
        except ClientError as error:
            return self._form(asked, change, visitor, given.texts, sentence_of(error), 503)

    def _preview(
        self,
        asked: Asked,
        change: Change,
        visitor: Visitor,
        given: Given,
        planned: Planned,
        problem: str | None = None,
        status: int = 200,
    ) -> Answer:
        fixed = Given({**given.texts, **planned.fixed})
        about = _about(asked, change, visitor, fixed, planned)
        hidden = {**fixed.texts, TOKEN: self._tokens.of(visitor.secret), PREVIEW: self._previews.show(about)}
        asks = list(planned.asks)
        if planned.destroys is not None:
            asks.append(Field(TYPED, f"Type {printable(planned.destroys)} to go on", is_required=True))
        failure = {} if problem is None else {"error": problem}
        before = {key: done.found.data for key, _, done in planned.before}
        data = {
            **_head(asked, change, planned),
            **failure,
            "destroys": planned.destroys,
            "asks": [each.name for each in asks],
            "notes": list(planned.preview.notes),
            **before,
            PREVIEW: planned.preview.found.data,
            "send": hidden,
        }
        sections = [section(key, caption, done.found) for key, caption, done in planned.before]
        shown = section(PREVIEW, "What would be done", planned.preview.found, empty="Nothing would be changed.")
        sections.append(shown._replace(command=planned.command or None))
        again = Link("Another one", asked.link(f"change/{change.path}", **_for_address(change, given)))
        return Answer(
            f"{planned.does}?",
            status,
            data,
            problem,
            sections,
            asks,
            hidden,
            planned.does,
            planned.destroys is not None,
            _sentences(planned.preview.notes),
            [again, _back(asked, change, given.texts)],
        )

    def _carried_out(
        self, admin: Admin, asked: Asked, change: Change, visitor: Visitor, given: Given, texts: Mapping[str, str]
    ) -> Answer:
        """Carry out what a preview showed.

        Raises:
            _Refused: it cannot be planned any more; nothing was changed.
        """
        planned = _plan(admin, change, given, asked.now_ms)
        fixed = Given({**given.texts, **planned.fixed})
        taken = self._previews.take(texts[PREVIEW], _about(asked, change, visitor, fixed, planned))
        if taken is not Taken.SAME:
            sentence = _GONE if taken is Taken.GONE else _OTHER
            return self._preview(asked, change, visitor, given, planned, sentence, 409)
        if planned.destroys is not None and texts.get(TYPED) not in (planned.destroys, printable(planned.destroys)):
            sentence = f"The name that was typed is not {printable(planned.destroys)}. Nothing was changed."
            return self._preview(asked, change, visitor, given, planned, sentence, 400)
        entry = Entry(
            visitor.name,
            visitor.address,
            asked.cluster.name,
            change.path,
            planned.on,
            given.for_audit(change.fields),
            {key: done.found.data for key, _, done in planned.before},
        )
        asks = Given({**given.texts, **{each.name: texts.get(each.name, "") for each in planned.asks}})
        try:
            identity = self._audit.begin(entry)
        except BadAuditLog as error:
            raise _Refused(f"{_capital(str(error))}. Nothing was changed.", 503) from None
        outcome = _tried(lambda: planned.carry_out(admin, asks))
        if isinstance(outcome, _Refused) and outcome.status == 400:
            self._end(identity, entry, [], outcome.sentence)
            return self._preview(
                asked, change, visitor, given, planned, f"{outcome.sentence} Nothing was changed.", 400
            )
        return self._result(asked, change, planned, outcome, self._ended(identity, entry, change, outcome))

    def _ended(self, identity: str, entry: Entry, change: Change, outcome: Done | _Refused) -> str | None:
        if isinstance(outcome, _Refused):
            return self._end(identity, entry, [], outcome.sentence)
        private = {each.name for each in change.fields if each.is_private}
        rows = [
            {key: value for key, value in row.items() if key.removesuffix("_base64") not in private}
            for row in outcome.found.data
        ]
        errors = [_said(failure_of(error, subject)) for subject, error in outcome.failures]
        return self._end(identity, entry, rows, " ".join(errors) or None)

    def _end(self, identity: str, entry: Entry, rows: object, error: str | None) -> str | None:
        """Write how a change ended; return a sentence if that failed."""
        try:
            self._audit.end(identity, entry, rows, error)
        except BadAuditLog as problem:
            return f"{_capital(str(problem))}: it does not say how this change ended."
        return None

    def _result(
        self, asked: Asked, change: Change, planned: Planned, outcome: Done | _Refused, unlogged: str | None
    ) -> Answer:
        path, query = planned.after
        links = [Link("Go on", asked.link(path, **query))]
        head = _head(asked, change, planned)
        if isinstance(outcome, _Refused):
            problems = [outcome.sentence, unlogged]
            sentence = " ".join(each for each in problems if each)
            return Answer(
                f"Not done: {planned.does}", outcome.status, {**head, "error": sentence}, sentence, links=links
            )
        errors = [_said(failure_of(error, subject)) for subject, error in outcome.failures]
        sentence = " ".join([*errors, *([] if unlogged is None else [unlogged])])
        data = {
            **head,
            "notes": list(outcome.notes),
            "result": outcome.found.data,
            **({"error": sentence} if sentence else {}),
        }
        shown = section("result", "What was done", outcome.found, empty="Nothing was changed.")
        sections = [shown._replace(command=planned.command or None)]
        verb = "Not wholly done" if errors and outcome.found.data else "Not done" if errors else "Done"
        return Answer(
            f"{verb}: {planned.does}",
            409 if errors else 200,
            data,
            sentence or None,
            sections,
            notes=_sentences(outcome.notes),
            links=links,
        )


def _plan(admin: Admin, change: Change, given: Given, now_ms: int) -> Planned:
    """Plan a change.

    Raises:
        _Refused: the form or the cluster does not allow it.
        ClientError: no broker answers.
    """
    planned = _tried(lambda: change.plan(admin, given, now_ms), unknown=False)
    if isinstance(planned, _Refused):
        raise planned
    return planned


def _tried(ask: Callable[[], R], *, unknown: bool = True) -> R | _Refused:
    """Return what a function returns, or why it failed.

    Args:
        unknown: whether a change may have been made when no answer came.
    """
    try:
        return ask()
    except BadForm as error:
        return _Refused(f"{_capital(str(error))}.", 400)
    except Failures as several:
        return _Refused(" ".join(map(_said, several.failures)), 409)
    except Failure as failure:
        return _Refused(_said(failure), 409)
    except click.UsageError as error:
        return _Refused(f"{_capital(error.message.rstrip('.'))}.", 400)
    except ClientError as error:
        if not unknown:
            raise
        return _Refused(f"{sentence_of(error)} It is not known whether the change was made.", 503)
    except KafkaError as error:
        return _Refused(_said(failure_of(error)), 409)


def _said(failure: Failure) -> str:
    """Return a failure as a page says it: an option of the command would not help."""
    is_option = failure.hint is not None and failure.hint.startswith("-")
    return sentence_of(Failure(failure.message, None if is_option else failure.hint))


def _about(asked: Asked, change: Change, visitor: Visitor, given: Given, planned: Planned) -> bytes:
    basis = planned.preview.found.data if planned.basis is None else planned.basis
    return hash_of(visitor.secret, asked.cluster.name, change.path, given.texts, [planned.destroys, basis])


def _head(asked: Asked, change: Change, planned: Planned) -> dict[str, object]:
    head: dict[str, object] = {
        "cluster": asked.cluster.name,
        "change": change.path,
        "does": planned.does,
        "on": planned.on,
    }
    return {**head, "command": planned.command} if planned.command else head


def _for_address(change: Change, given: Given) -> dict[str, str]:
    """Return the fields that an address may have, for a form that is filled in again: not what is private, or long."""
    kept = [
        each for each in change.fields if not each.is_private and each.kind not in ("hidden", "secret", "lines", "file")
    ]
    return {each.name: text for each in kept if (text := given.text(each.name))}


def _back(asked: Asked, change: Change, texts: Mapping[str, str]) -> Link:
    query = {}
    if change.subject is not None:
        parameter, field = change.subject
        query = {parameter: texts.get(field) or None}
    return Link("Back", asked.link(change.page, **query))


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _sentences(notes: Sequence[str]) -> list[str]:
    return [f"{_capital(each.rstrip('.'))}." for each in notes]
