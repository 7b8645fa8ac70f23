"""Long requests are handled in pieces, and answered as if they had been handled at once."""

from __future__ import annotations

from barnabas.group.pieces import PIECE, extend_topics, pieces
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.messages import OffsetDeleteRequest

Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Partition = OffsetDeleteRequest.OffsetDeleteRequestPartition


def topics(counts: list[int]) -> list[Topic]:
    return [
        Topic(name=f"t{number}", partitions=[Partition(partition_index=index) for index in range(count)])
        for number, count in enumerate(counts)
    ]


@given(st.lists(st.integers(0, 3 * PIECE // 2), max_size=4), st.integers(0, 3))
def test_pieces_put_together_are_the_whole(counts: list[int], more: int) -> None:
    asked = topics([*counts, *[PIECE] * more])
    whole: list[Topic] = []
    for piece in pieces(asked):
        assert sum(len(topic.partitions) for topic in piece) <= PIECE
        extend_topics(whole, piece)
    assert whole == topics([*counts, *[PIECE] * more])


def test_a_short_request_is_one_piece_of_its_own_topics() -> None:
    asked = topics([1, 2])
    (piece,) = pieces(asked)
    assert [one is topic for one, topic in zip(piece, asked, strict=True)] == [True, True]


def test_a_request_without_topics_is_one_piece() -> None:
    assert list(pieces([])) == [[]]


def test_topics_without_partitions_count_too() -> None:
    assert [len(piece) for piece in pieces(topics([0] * (PIECE + 1)))] == [PIECE, 1]
