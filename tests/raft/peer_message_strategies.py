"""Requests and answers of the quorum, made by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.peer_messages import (
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    LogEnd,
    Vote,
    VoteAnswer,
)
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.seams import SnapshotId
from barnabas.records.builder import build_batch

epochs = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
node_ids = st.integers(0, 2**31 - 1)
leader_ids = st.integers(-1, 2**31 - 1)
keys = st.builds(ReplicaKey, node_ids, st.binary(min_size=16, max_size=16))
log_ends = st.builds(LogEnd, epochs, offsets)
errors = st.sampled_from([ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_VOTER_KEY])

votes = st.builds(Vote, epochs, keys, keys, log_ends, st.booleans())
begun = st.builds(BeginEpoch, epochs, node_ids, keys, st.just(()))
ended = st.builds(EndEpoch, epochs, node_ids, st.lists(keys, max_size=4).map(tuple))
fetches = st.builds(FetchFrom, epochs, keys, offsets, epochs, st.integers(-1, 2**63 - 1), st.integers(0, 2**31 - 1))

vote_answers = st.builds(VoteAnswer, epochs, leader_ids, st.booleans(), errors)
epoch_answers = st.builds(EpochAnswer, epochs, leader_ids, errors)


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytearray, ...]:
    """Some batches, one after the other."""
    made, offset = [], draw(st.integers(0, 1_000))
    for count in draw(st.lists(st.integers(1, 3), max_size=3)):
        records = [(0, None, b"v", ())] * count
        made.append(build_batch(records, base_offset=offset, leader_epoch=draw(st.integers(0, 9))))
        offset += count
    return tuple(made)


def of_its_latest_epoch(answer: Fetched) -> Fetched:
    """A leader names no later epoch than its own."""
    named = [end.epoch for end in (answer.diverging, answer.snapshot) if end is not None]
    return answer._replace(epoch=max([answer.epoch, *named]))


fetched = st.builds(
    Fetched,
    epochs,
    leader_ids,
    st.integers(-1, 2**63 - 1),
    offsets,
    st.none() | log_ends,
    st.none() | st.builds(SnapshotId, offsets, epochs),
    batches(),
    errors,
).map(of_its_latest_epoch)
