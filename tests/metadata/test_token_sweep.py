"""When the active controller removes expired tokens."""

from __future__ import annotations

from barnabas.security.delegation_tokens import TokenSettings
from tests.metadata.test_delegation_token_control import KEY, SETTINGS, Tokens

EVERY_MS = 500
SOON = SETTINGS._replace(expiry_check_interval_ms=EVERY_MS)


def tick(node: Tokens, ms: int) -> None:
    """Let time pass, and the controller look after each tenth of a second."""
    for _ in range(ms // 100):
        node.now_ms += 100
        node.controller.tick()


def test_expired_tokens_are_removed_at_the_next_look() -> None:
    node = Tokens(SOON)
    node.controller.tick()
    short, long = node.create(max_lifetime_ms=150), node.create()
    tick(node, EVERY_MS - 100)
    assert node.tokens.keys() == {short.token_id, long.token_id}
    tick(node, 100)
    assert node.tokens.keys() == {long.token_id}
    tick(node, 1_000)
    assert node.tokens == {}


def test_a_token_that_ends_in_this_millisecond_stays() -> None:
    node = Tokens(SOON)
    node.controller.tick()
    node.create(max_lifetime_ms=EVERY_MS)
    tick(node, EVERY_MS)
    assert len(node.tokens) == 1


def test_the_wall_clock_says_what_is_expired() -> None:
    node = Tokens(SOON)
    node.controller.tick()
    node.create()
    node.wall_jump_ms = 60_000
    node.controller.tick()
    assert len(node.tokens) == 1, "the look is not due, however far the wall clock jumps"
    tick(node, EVERY_MS)
    assert node.tokens == {}


def test_many_tokens_are_removed_in_several_batches() -> None:
    node = Tokens(SOON)
    node.controller.tick()
    for _ in range(600):
        node.create(max_lifetime_ms=1)
    before = len(node.log.batches)
    tick(node, EVERY_MS)
    assert node.tokens == {}
    assert len(node.log.batches) - before >= 3


def test_an_idle_controller_writes_nothing() -> None:
    node = Tokens(SOON)
    node.create()
    end = node.driver.node.end_offset
    tick(node, EVERY_MS)
    assert node.driver.node.end_offset == end


def test_a_node_without_the_secret_leaves_them() -> None:
    """Another controller may have it."""
    node = Tokens(TokenSettings(KEY, expiry_check_interval_ms=EVERY_MS))
    node.create(max_lifetime_ms=1)
    node.settings = node.settings._replace(tokens=None)
    node.restart()
    tick(node, 10 * EVERY_MS)
    assert len(node.tokens) == 1
