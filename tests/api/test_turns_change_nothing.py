"""Turns of the loop change no response: a node that waits for one at each opportunity gives the same bytes as one that never does.

Both nodes get the same requests in the same folder, on a clock of their own: each API in each version with every field filled, and each
array of each API at some length. The requests change the nodes, in the same way if their responses are the same.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from barnabas import turns
from barnabas.api import APIS
from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.group.parts import extend_topics
from barnabas.protocol.api_keys import ApiKey, response_header_version
from barnabas.protocol.messages import OffsetFetchResponse
from barnabas.records.builder import build_batch
from tests.api.filled_requests import Values, filled
from tests.api.long_requests import arrays, long_request
from tests.api.test_every_request_is_answered import SPECIAL, Late
from tests.short_turns import set_turn

NEVER, ALWAYS = 1 << 60, 1
"""What a turn may cost, so that nothing or everything waits for one."""

BYTES = 500
"""Of a long request: tens to hundreds of elements."""

DIFFERENT_EACH_TIME = (ApiKey.DESCRIBE_LOG_DIRS,)  # free space

Exchange = tuple[int, str, bytes, bytes | str | None]
"""The version, what the request is, its body, and the response, or why the connection closes."""


class Recorded:
    """A node, and all that it was asked and has answered, by API."""

    def __init__(self, folder: Path) -> None:
        self.exchanges: defaultdict[int, list[Exchange]] = defaultdict(list)
        self._late = Late(folder)
        self._late.node.create_topic("w", 20)
        self._names = dict.fromkeys(("name", "topic", "topic_name"), "w")

    def close(self) -> None:
        self._late.node.close()

    def ask_all(self) -> None:
        for key in APIS:
            for version in range(APIS[key].min_served, APIS[key].max_version + 1):
                self._ask(key, version, f"version {version}", self._filled(key, version))
        for key in APIS:
            for of in arrays(key):
                for shape in of.shapes:
                    values = {**self._late.values, **self._names, **SPECIAL.get(key, {})}
                    body = long_request(of, shape, BYTES, values).encode(of.version)
                    self._ask(key, of.version, f"{of.name} ({shape})", body)

    def _filled(self, key: int, version: int) -> bytes:
        values: Values = {**self._late.values, **SPECIAL.get(key, {})}
        if key == ApiKey.PRODUCE:
            values["records"] = build_batch([(0, b"k", b"v", [])])
            values["transactional_id"] = None
        encoded: bytes = filled(key, version, values).encode(version)
        return encoded

    def _ask(self, key: int, version: int, what: str, body: bytes) -> None:
        response: Any
        try:
            response = self._late.node.send(key, version, body)
        except RefusedRequest as refused:
            response = str(refused)
        self.exchanges[key].append((version, what, body, response))


Exchanges = dict[int, list[Exchange]]


def counted_waits(patch: pytest.MonkeyPatch) -> list[int]:
    """Return a list whose element is how often somebody has waited for a turn."""
    count = [0]
    wait = turns.next_turn_of

    def counted(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        count[0] += 1
        return wait(loop)

    patch.setattr(turns, "next_turn_of", counted)
    return count


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exchanges, Exchanges]:
    """What a node that never waits for a turn has answered, and one that always does."""
    folder = tmp_path_factory.mktemp("turns") / "node"
    found, waits = [], []
    for turn in (NEVER, ALWAYS):
        with pytest.MonkeyPatch.context() as patch:
            set_turn(patch, turn)
            count = counted_waits(patch)
            node = Recorded(folder)
            node.ask_all()
            node.close()
        found.append(dict(node.exchanges))
        waits += count
        shutil.rmtree(folder)
    never, always = waits
    assert always > 100 * never, "the one waits for hardly any turn, the other for each"
    return found[0], found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", [key for key in APIS if key not in DIFFERENT_EACH_TIME], ids=lambda key: ApiKey(key).name
)
def test_the_same_bytes(both: tuple[Exchanges, Exchanges], key: int) -> None:
    once, in_turns = both
    assert len(once[key]) > APIS[key].max_version - APIS[key].min_served
    for (version, what, body, response), (_, _, body_in_turns, response_in_turns) in zip(
        once[key], in_turns[key], strict=True
    ):
        assert body == body_in_turns, what
        if key == ApiKey.OFFSET_FETCH:
            response, response_in_turns = (_merged(each, version) for each in (response, response_in_turns))
        assert response == response_in_turns, what


def _merged(response: bytes | str | None, version: int) -> Any:
    """Merge topics that are named many times in a row, as OffsetFetch does where a part of the request ends and the next begins."""
    assert isinstance(response, bytes | bytearray)
    answer = OffsetFetchResponse.decode(response[response_header_version(ApiKey.OFFSET_FETCH, version) :], version)
    for holder in (answer, *answer.groups):
        merged: list[Any] = []
        for topic in holder.topics:
            extend_topics(merged, [topic])
        holder.topics = merged
    return answer
