"""The list of what is not typed has blocks that exist, and reasons that name files that exist."""

import re

from tests.test_documents import STATES
from tests.typed.__main__ import PAGES
from tests.typed.environments import ROOT
from tests.typed.not_typed import NOT_TYPED
from tests.typed.outputs import DIRECTIVES
from tests.typed.page import blocks_of, is_typed


def test_every_listed_block_exists() -> None:
    existing = {(page, block.commands[0]) for page in PAGES for block in blocks_of(page)}
    assert sorted(set(NOT_TYPED) - existing) == []


def test_no_command_hides_in_a_block_that_is_not_a_shells() -> None:
    shell = re.compile(
        r"^(?:\$ |(?:barnabas (?!\d|starts|ready)|kafka-[\w-]+\.sh |curl |docker |pip )).*", re.MULTILINE
    )
    hidden = [
        (page, found[0])
        for page in PAGES
        for language, text in re.findall(r"^```(.*?)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
        if language not in ("console", "sh", "bash") and (found := shell.search(text))
    ]
    assert hidden == []


def test_reasons_name_what_exists() -> None:
    named = {name for why in NOT_TYPED.values() for name in re.findall(r"tests/[\w/]+(?:\.py)?", why)}
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_what_pages_say_of_outputs_and_states_is_known() -> None:
    typed = [block for page in PAGES for block in blocks_of(page) if is_typed(block)]
    assert len(typed) > 50
    assert {words for block in typed for words in block.differs} - DIRECTIVES == set()
    assert {words for block in typed for words in block.setup} - set(STATES) == set()
