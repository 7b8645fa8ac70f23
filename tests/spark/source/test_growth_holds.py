"""Which new partitions a batch may not read yet."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.ordered_growth import Generation, read_generations
from barnabas.spark.source.growth_holds import GrowthHolds


class Looks:
    """Answers with one setting, and counts how often it is asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[list[str]] = []

    def __call__(self, topics: Iterable[str]) -> dict[str, tuple[Generation, ...]]:
        self.asked.append(list(topics))
        return {"a": read_generations(self.text)} if self.text else {}


BEGIN = {("a", 0): 5, ("a", 1): 20, ("a", 2): 0, ("a", 3): 0, ("b", 2): 0}
END = {("a", 0): 30, ("a", 1): 30, ("a", 2): 8, ("a", 3): 9, ("b", 2): 7}


def test_a_new_partition_waits_until_a_batch_begins_at_the_fence() -> None:
    holds, looks = GrowthHolds(), Looks("2>4 since=1 fences=6,20")
    assert holds.held_back(BEGIN, END, has_new=True, look=looks) == {**END, ("a", 2): 0}
    assert holds.held_back({**BEGIN, ("a", 0): 6}, END, has_new=False, look=looks) == END


def test_everything_new_waits_while_the_growth_is_not_sealed() -> None:
    holds, looks = GrowthHolds(), Looks("2>4")
    assert holds.held_back(BEGIN, END, has_new=True, look=looks) == {**END, ("a", 2): 0, ("a", 3): 0}


def test_a_query_that_does_not_read_the_parent_does_not_wait() -> None:
    holds, looks = GrowthHolds(), Looks("2>4 since=1 fences=6,20")
    begin, end = {("a", 2): 0}, {("a", 2): 8}
    assert holds.held_back(begin, end, has_new=True, look=looks) == end


def test_the_setting_is_read_at_the_first_batch_for_new_partitions_and_while_it_may_change() -> None:
    holds, looks = GrowthHolds(), Looks("")
    for has_new, asked in ((False, 1), (False, 1), (True, 2), (False, 2)):
        assert holds.held_back(BEGIN, END, has_new=has_new, look=looks) == END
        assert len(looks.asked) == asked
    assert looks.asked[0] == ["a", "b"]
    looks.text = "2>4"
    holds.held_back(BEGIN, END, has_new=True, look=looks)
    looks.text = "2>4 since=1 fences=0,0"
    assert holds.held_back(BEGIN, END, has_new=False, look=looks) == END
    assert len(looks.asked) == 4
    holds.held_back(BEGIN, END, has_new=False, look=looks)
    assert len(looks.asked) == 4
