"""The console as an ASGI application.

    /                          the clusters, or the first page of the only one
    /clusters/NAME/            its overview; `PAGES` has the others
    /clusters/NAME/events      the overview again and again, as server-sent events
    /clusters/NAME/change/…    a form of `CHANGES`; POST previews the change, and carries it out
    /clusters/NAME/messages/…  a search again and again as events, and its records as a file
    /clusters/NAME/record/raw  the bytes of a key or a value
    /login  /logout  /static/  the only ones that need no login are the first and the last

Every page has a twin in JSON: `?format=json`, or `Accept: application/json`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from barnabas.cli.output import printable_json
from barnabas.console.asked import Asked
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog
from barnabas.console.changes.change import Change
from barnabas.console.changes.table import CHANGES
from barnabas.console.changing import READ_ONLY, Answer, Changing, Visitor
from barnabas.console.export import EXPORT_FORMATS, exported
from barnabas.console.guard import COOKIE, Guard, cookie_of, is_here
from barnabas.console.links import Links
from barnabas.console.logins import SESSION_S, Logins
from barnabas.console.page import Link, Page, Section
from barnabas.console.pages import PAGES, PageOfCluster
from barnabas.console.pages.messages import bad_section
from barnabas.console.pages.overview import overview_sections
from barnabas.console.pages.record import named_record
from barnabas.console.rendering import Templates
from barnabas.console.sampler import Sampler
from barnabas.console.search.query import BadQuery, Query
from barnabas.console.sent_form import BadBody, FormReader
from barnabas.console.tail import Tail
from barnabas.protocol.errors import KafkaError
from barnabas.version import VERSION
from barnabas.words.requirements import NotInstalled
from barnabas.words.times import format_time_ms

STATIC = Path(__file__).parent / "static"


class Console:
    """The pages about some clusters.

    Args:
        clusters: at least one.
        logins: who may see the pages.
        base_path: before every address, such as `/console`.
        host: that the console listens on.
        names: other hosts by which it is reached.
        audit: the log of changes; None for a console that changes nothing.
    """

    def __init__(
        self,
        clusters: Sequence[AskedCluster],
        logins: Logins | None = None,
        *,
        base_path: str = "",
        host: str = "127.0.0.1",
        names: Collection[str] = (),
        audit: AuditLog | None = None,
    ) -> None:
        self.clusters = {each.name: each for each in clusters}
        self.samplers = {each.name: Sampler(each) for each in clusters}
        self.logins = logins or Logins()
        self._changing = None if audit is None else Changing(audit)
        self._forms = FormReader()
        self._links = Links(base_path)
        self._templates = Templates(
            links=self._links,
            clusters=list(self.clusters),
            pages=PAGES,
            version=VERSION,
            iso=format_time_ms,
            logins_are_needed=self.logins.are_needed,
            writes=audit is not None,
        )
        self._host = host
        self._names = names

    def __repr__(self) -> str:
        return f"<Console {', '.join(self.clusters)}>"

    def app(self) -> ASGIApp:
        """Return the application."""
        routes: list[BaseRoute] = [
            Route("/", self._clusters),
            Route("/login", self._log_in_form),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
            Route("/clusters/{cluster}/events", self._events),
            Route("/clusters/{cluster}/messages/events", self._tail),
            Route("/clusters/{cluster}/messages/export.{format}", self._export),
            Route("/clusters/{cluster}/record/raw", self._raw),
            *(
                Route(
                    f"/clusters/{{cluster}}/change/{each.path}",
                    partial(self._change, change=each),
                    methods=["GET", "POST"],
                )
                for each in CHANGES
            ),
            *(Route(f"/clusters/{{cluster}}/{each.path}", partial(self._page, page=each)) for each in PAGES),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        base = self._links.base_path
        app = Starlette(
            routes=[Mount(base, routes=routes)] if base else routes,
            exception_handlers={404: self._not_found},
            lifespan=self._lifespan,
        )
        files = {f"/change/{each.path}": each.file_bytes_max for each in CHANGES if each.file_bytes_max}
        return Guard(app, self.logins, self._links, self._host, self._names, files if self._changing else {})

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        for each in self.clusters.values():
            each.close()

    def _asked(self, request: Request) -> Asked | None:
        """Return what a request asks; None if there is no such cluster."""
        cluster = self.clusters.get(request.path_params["cluster"])
        if cluster is None:
            return None
        query = dict(parse_qsl(request.url.query, errors="replace"))
        return Asked(cluster, self.samplers[cluster.name], self._links, query, time.time_ns() // 1_000_000)

    async def _page(self, request: Request, page: PageOfCluster) -> Response:
        asked = self._asked(request)
        if asked is None:
            return await self._not_found(request, None)
        made = await page.make(asked)
        status = 404 if made.is_missing else 200
        if wants_json(request):
            return _json({"cluster": asked.cluster.name, **made.data()}, status)
        # The page may have a thousand records.
        return await asyncio.to_thread(self._html, made, asked, page, status)

    def _html(self, made: Page, asked: Asked, page: PageOfCluster, status: int) -> Response:
        json_link = asked.link(page.path, **{**asked.query, "format": "json"})
        html = self._templates.html(
            "page",
            page=made,
            cluster=asked.cluster.name,
            path=page.path,
            asked=asked,
            json_link=json_link,
            changes=[] if made.is_missing else self._offered(asked, page.path),
        )
        return HTMLResponse(html, status)

    def _offered(self, asked: Asked, path: str) -> list[Link]:
        """Return the changes to which a page leads."""
        offered = [] if self._changing is None else [each for each in CHANGES if path in (each.page, *each.also)]
        found = []
        for each in offered:
            parameter, field = each.subject_on(path) or ("", "")
            query = {field: asked.query.get(parameter)} if field else {}
            if not all(asked.query.get(carried) for carried in each.carries):
                continue
            query |= {carried: asked.query.get(carried) for carried in each.carries}
            found.append(Link(each.title, asked.link(f"change/{each.path}", **query)))
        return found

    async def _change(self, request: Request, change: Change) -> Response:
        asked = self._asked(request)
        if asked is None:
            return await self._not_found(request, None)
        if self._changing is None:
            answer = Answer(change.title, 403, {"cluster": asked.cluster.name, "error": READ_ONLY}, READ_ONLY)
        elif request.method == "POST":
            answer = await self._sent(request, self._changing, asked, change)
        else:
            answer = await self._changing.opened(asked, change, self._visitor(request))
        if wants_json(request):
            return _json(answer.data, answer.status)
        # A group may have offsets in thousands of partitions.
        html = await asyncio.to_thread(
            self._templates.html,
            "change",
            answer=answer,
            cluster=asked.cluster.name,
            path=change.page,
            asked=asked,
            action=asked.link(f"change/{change.path}"),
        )
        return HTMLResponse(html, answer.status)

    async def _sent(self, request: Request, changing: Changing, asked: Asked, change: Change) -> Answer:
        visitor, content_type = self._visitor(request), request.headers.get("content-type", "")
        try:
            length = int(request.headers["content-length"])  # The guard has looked at it.
            form = await self._forms.read(content_type, length, request.stream(), change.file_bytes_max)
        except BadBody as error:
            return changing.form(asked, change, visitor, f"{error.sentence} Nothing was changed.", error.status)
        return await changing.answer(asked, change, visitor, form.texts, form.files)

    def _visitor(self, request: Request) -> Visitor:
        authorization, cookie = request.headers.get("authorization"), cookie_of(request.headers)
        name = self.logins.name_of(authorization, cookie)
        return Visitor(name, request.client.host if request.client else None, cookie or "" if name else "")

    async def _events(self, request: Request) -> Response:
        asked = self._asked(request)
        if asked is None:
            return await self._not_found(request, None)
        return StreamingResponse(self.events(asked), media_type="text/event-stream")

    async def events(self, asked: Asked) -> AsyncGenerator[str, None]:
        """Yield the sections of each new look at a cluster as an event."""
        async with contextlib.aclosing(asked.sampler.looks()) as looks:
            async for now, before in looks:
                yield self._event(overview_sections(asked, now, before), now.time_ms)

    def _event(self, sections: Sequence[Section], time_ms: int) -> str:
        html = self._templates.html("sections", sections=sections, time_ms=time_ms)
        # A value may have characters that end a line for `splitlines`, and for an event stream a bare return does.
        lines = html.replace("\r", "&#13;").split("\n")
        return "".join(("event: sections\n", *(f"data: {line}\n" for line in lines), "\n"))

    async def _tail(self, request: Request) -> Response:
        asked = self._asked(request)
        if asked is None:
            return await self._not_found(request, None)
        return StreamingResponse(self.tail(asked), media_type="text/event-stream")

    async def tail(self, asked: Asked) -> AsyncGenerator[str, None]:
        """Yield the newest records of a search, as an event whenever there are new ones."""
        try:
            query = Query.of(asked.query)
        except BadQuery as error:
            yield self._event([bad_section(str(error))], asked.now_ms)
            return
        async with contextlib.aclosing(Tail(asked, query).sections()) as looks:
            async for sections in looks:
                yield await asyncio.to_thread(self._event, sections, time.time_ns() // 1_000_000)

    async def _export(self, request: Request) -> Response:
        asked = self._asked(request)
        make = EXPORT_FORMATS.get(request.path_params["format"])
        if asked is None or make is None:
            return await self._not_found(request, None)
        try:
            query = Query.of(asked.query)
            writer = make(asked.cluster.decoder)
        except (BadQuery, NotInstalled) as error:
            return _json({"error": str(error)}, 400)
        name = f"{query.topic}.{request.path_params['format']}"
        return StreamingResponse(exported(asked, query, writer), media_type=writer.media_type, headers=attachment(name))

    async def _raw(self, request: Request) -> Response:
        asked = self._asked(request)
        if asked is None:
            return await self._not_found(request, None)
        part = "key" if asked.query.get("part") == "key" else "value"
        try:
            query, found, sentences = await asked.cluster.search(lambda admin: named_record(admin, asked))
        except (BadQuery, KafkaError) as error:
            return _json({"error": str(error)}, 404)
        data = None if found is None else found.record.key if part == "key" else found.record.value
        if found is None or data is None:
            return _json({"error": " ".join(sentences) if found is None else f"The {part} is null."}, 404)
        name = f"{query.topic}-{found.partition}-{found.record.offset}.{part}"
        return Response(data, media_type="application/octet-stream", headers=attachment(name))

    async def _clusters(self, request: Request) -> Response:
        if len(self.clusters) == 1 and not wants_json(request):
            return RedirectResponse(self._links.of_cluster(next(iter(self.clusters))), 303)
        if wants_json(request):
            return _json({"clusters": list(self.clusters)}, 200)
        return HTMLResponse(self._templates.html("clusters"))

    async def _log_in_form(self, request: Request) -> Response:
        return self._login_page(request.query_params.get("to", ""), None, 200)

    async def _log_in(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        to = form.get("to", "")
        try:
            cookie = await self.logins.log_in(form.get("name", "").strip(), form.get("secret", "").strip())
        except ValueError as error:
            return self._login_page(to, f"Nobody can log in now: {error}.", 503)
        if cookie is None:
            return self._login_page(to, "That is not right. Try again.", 403)
        answer = RedirectResponse(to if is_here(to, self._links) else self._links.to(), 303)
        answer.set_cookie(
            COOKIE,
            cookie,
            SESSION_S,
            path=self._links.to(),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer

    def _login_page(self, to: str, problem: str | None, status: int) -> Response:
        has_users, has_token = self.logins.password_file is not None, self.logins.token_file is not None
        return HTMLResponse(
            self._templates.html("login", to=to, problem=problem, has_users=has_users, has_token=has_token), status
        )

    async def _log_out(self, request: Request) -> Response:
        cookie = cookie_of(request.headers)
        if cookie is not None:
            self.logins.log_out(cookie)
        answer = RedirectResponse(self._links.to("login"), 303)
        answer.delete_cookie(COOKIE, path=self._links.to())
        return answer

    async def _not_found(self, request: Request, _: Exception | None) -> Response:
        sentence = "There is no such page here."
        if (name := request.path_params.get("cluster")) is not None and name not in self.clusters:
            sentence = f"This console has no cluster named {name}."
        if wants_json(request):
            return _json({"error": sentence}, 404)
        return HTMLResponse(self._templates.html("not_found", sentence=sentence), 404)


def wants_json(request: Request) -> bool:
    """Return whether a request is for the JSON of a page."""
    wanted = request.query_params.get("format")
    return wanted == "json" if wanted is not None else request.headers.get("accept", "").startswith("application/json")


def attachment(name: str) -> dict[str, str]:
    """Return the headers of a response that a browser keeps as a file; nothing of it is shown as a page."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    return {"content-disposition": f'attachment; filename="{plain}"'}


def _json(data: object, status: int) -> Response:
    body = printable_json(json.dumps(data, indent=2, ensure_ascii=False))
    return Response(f"{body}\n", status, media_type="application/json")
