"""The page of a timeline can be read, and its hash tells runs apart."""

from __future__ import annotations

import contextlib
import logging

from barnabas.simulation.timeline import LogLines, Timeline
from barnabas.simulation.world import World

PAGE = """\
     seconds  who         what
    0.000000  broker      starts
    1.500000  network     broker to clients is cut
    2.000000  broker      is killed"""


def told() -> tuple[Timeline, list[float]]:
    now = [0.0]
    timeline = Timeline(lambda: now[0])
    timeline.note("broker", "starts")
    now[0] = 1.0
    timeline.note("clients", "p0: PRODUCE took 3.0 ms", is_detail=True)
    now[0] = 1.5
    timeline.note("network", "broker to clients is cut")
    now[0] = 2.0
    timeline.note("broker", "is killed")
    return timeline, now


def test_a_page_says_when_who_did_what() -> None:
    timeline, _ = told()
    assert timeline.page() == PAGE


def test_details_are_shown_on_request() -> None:
    timeline, _ = told()
    assert "    1.000000  clients     p0: PRODUCE took 3.0 ms" in timeline.page(details=True).splitlines()


def test_a_long_page_keeps_its_end() -> None:
    timeline, _ = told()
    assert timeline.page(last=1).splitlines()[1:] == [
        "           …  2 earlier lines",
        "    2.000000  broker      is killed",
    ]


def test_equal_stories_have_equal_hashes_and_others_do_not() -> None:
    (first, _), (again, now) = told(), told()
    assert first.digest() == again.digest()
    now[0] = 3.0
    again.witness("a", "b", 17)
    seen = again.digest()
    assert seen != first.digest()
    now[0] = 4.0
    again.witness("a", "b", 17)
    assert again.digest() != seen


def test_a_node_logs_into_the_timeline_without_changing_the_hash() -> None:
    logger = logging.Logger("a logger")
    logger.addHandler(LogLines(logging.WARNING))

    async def work() -> None:
        logger.warning("the %s is %s", "disk", "full")
        logger.info("all is well")

    world = World(1)
    node = world.add_node("clients")

    async def story() -> str:
        logger.warning("nobody says this")
        before = world.timeline.digest()
        await node.run(work())
        assert world.timeline.digest() == before
        return world.timeline.page()

    assert world.play(story(), seconds=1).splitlines()[1:] == [
        "    0.000000  clients     warning: the disk is full",
    ]


def test_the_network_and_the_disk_say_what_fails_by_name() -> None:
    world = World(1)
    one, other = world.add_node("one"), world.add_node("other")

    async def story() -> None:
        world.network.cut(one.host, other.host)
        world.network.slow_down(other.host, one.host, 0.25)
        world.network.part([one.host], [other.host])
        world.network.heal(one.host, other.host)
        world.network.heal_all()
        one.disk.fail_call(1)
        with contextlib.suppress(OSError):
            one.disk.mkdir("/data")

    world.play(story(), seconds=1)
    assert [(entry.who, entry.what) for entry in world.timeline.entries] == [
        ("network", "one to other is cut"),
        ("network", "other to one takes 0.25 s more"),
        ("network", "one and other are parted"),
        ("network", "one to other heals"),
        ("network", "all ways heal"),
        ("one", "its disk fails to mkdir /data"),
    ]
