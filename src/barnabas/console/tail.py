"""The live end of a topic: the records that pass a search's filters, as they arrive.

A tail begins with the newest records, and then reads what was appended since its last look, from where that ended. Without an end of its
own it reads forwards only, so each record is read a single time, however long it runs. The pause between two looks is ten times as long as
a look took, at least a second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.page import Section, failed_section
from barnabas.console.pages.messages import bad_section, read_section, record_sections
from barnabas.console.search.fetched import Found
from barnabas.console.search.guess import Guess, guess_of, guessed
from barnabas.console.search.query import LIMIT_MAX, BadQuery, Query
from barnabas.console.search.search import Limits, Outcome, run
from barnabas.protocol.errors import KafkaError
from barnabas.words.requirements import NotInstalled

INTERVAL_S = 1.0
_PAUSE_FOR_EACH_SECOND = 10
_FIRST = Limits(seconds=2.0, bytes=64 * 1024 * 1024)


class Tail:
    """Follows one search.

    Args:
        query: its order and its part of the log do not count.
        interval_s: between two looks, at least.
        clock: returns seconds that never go back.
    """

    def __init__(
        self, asked: Asked, query: Query, interval_s: float = INTERVAL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._asked = asked
        self._query = replace(query, offset="", order="newest", since="", until="")
        self._interval_s = interval_s
        self._clock = clock
        self._latest: deque[Found] = deque(maxlen=query.limit)
        self._guess = Guess(self._query)
        self._topic_id = b""
        self._begins: dict[int, int] | None = None
        self._is_unjudged = False

    def __repr__(self) -> str:
        return f"<Tail {self._query.topic} records={len(self._latest)}>"

    async def sections(self) -> AsyncGenerator[list[Section]]:
        """Yield the sections of the page again whenever there are new records; and why there are none, each time the cluster is asked."""
        while True:
            began_s = self._clock()
            try:
                outcome, is_new = await self._asked.cluster.search(self._look)
            except (BadQuery, NotInstalled) as error:
                yield [bad_section(str(error))]
                return
            except KafkaError as error:
                yield [failed_section("messages", "Records", error, f"topic {self._query.topic}")]
                self._begins = None
            else:
                if is_new:
                    yield self._sections(outcome)
            await asyncio.sleep(max(self._interval_s, _PAUSE_FOR_EACH_SECOND * (self._clock() - began_s)))

    def _sections(self, outcome: Outcome) -> list[Section]:
        shown = replace(outcome, query=self._query, found=list(self._latest), found_before=0, cursor=None)
        records = record_sections(self._asked, self._query, shown)
        return [*records, read_section(self._asked, self._query, outcome, self._guess)]

    def _look(self, admin: Admin) -> tuple[Outcome, bool]:
        decoder, now_ms = self._asked.cluster.decoder, self._asked.now_ms
        if self._begins is None:
            return self._begin(admin), True
        if self._is_unjudged:
            self._choose(guessed(admin, self._query, decoder, now_ms))
        following = replace(self._query, order="oldest", limit=LIMIT_MAX)
        outcome = run(admin, following, decoder, now_ms, begins=self._begins)
        if outcome.topic_id != self._topic_id:
            # Another topic has the name now, and offsets of its own.
            return self._begin(admin), True
        self._begins |= {each.partition: each.position for each in outcome.spans if each.is_known}
        self._latest.extendleft(outcome.found)
        self._learn(outcome)
        is_new = bool(outcome.found) or outcome.is_deleted or bool(outcome.failures) or self._is_unjudged
        return outcome, is_new

    def _begin(self, admin: Admin) -> Outcome:
        decoder, now_ms = self._asked.cluster.decoder, self._asked.now_ms
        if self._query.filter:
            self._choose(guessed(admin, self._query, decoder, now_ms))
        outcome = run(admin, self._query, decoder, now_ms, limits=_FIRST)
        self._topic_id = outcome.topic_id
        self._begins = {each.partition: each.end for each in outcome.spans if each.is_known}
        self._latest.clear()
        self._latest.extend(outcome.found)
        self._learn(outcome)
        return outcome

    def _learn(self, outcome: Outcome) -> None:
        """Choose formats once there are records; note whether the filter could be asked."""
        self._is_unjudged = any(outcome.unjudged.values())
        if self._latest:
            chosen = guess_of(self._query, self._asked.cluster.decoder, list(self._latest))
            self._query = chosen.query
            if not self._query.filter:
                self._choose(chosen)

    def _choose(self, guess: Guess) -> None:
        self._query = guess.query
        if guess.records or guess.why_none:
            self._guess = guess
