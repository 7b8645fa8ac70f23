"""The page of a timeline can be read, and its hash tells runs apart."""

from __future__ import annotations

from tests.simulation.timeline import Timeline

PAGE = """\
     seconds  who         what
    0.000000  broker      starts
    1.500000  network     127.0.0.1 to 127.0.0.2 is cut
    2.000000  broker      is killed"""


def told() -> tuple[Timeline, list[float]]:
    now = [0.0]
    timeline = Timeline(lambda: now[0])
    timeline.note("broker", "starts")
    now[0] = 1.0
    timeline.note("clients", "p0: PRODUCE took 3.0 ms", is_detail=True)
    now[0] = 1.5
    timeline.note("network", "127.0.0.1 to 127.0.0.2 is cut")
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
