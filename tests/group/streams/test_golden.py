"""Random cases with the answers of Kafka 4.4's own classes: what a member's next step is, and what a topology's topics amount to.

Each line of `streams_golden/*.jsonl` is a case and the answer that `CurrentAssignmentBuilder` or `InternalTopicManager`
gave to it. Tasks are written as active, standby and warm-up, active ones with their epochs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.group.streams.member import MemberState, StreamsGroupMember
from barnabas.group.streams.reconciliation import TaskOwners, reconcile
from barnabas.group.streams.tasks import TasksTuple, TasksTupleWithEpochs
from barnabas.group.streams.topic_configuration import configure_topics
from barnabas.group.streams.topology import StreamsTopology
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupTopologyValue as Value

GOLDEN = Path(__file__).parent / "golden"


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _tasks(found: dict[str, list[int]]) -> dict[str, frozenset[int]]:
    return {name: frozenset(indexes) for name, indexes in found.items() if indexes}


def _with_epochs(found: list[Any]) -> TasksTupleWithEpochs:
    active = {name: {int(index): epoch for index, epoch in epochs.items()} for name, epochs in found[0].items()}
    return TasksTupleWithEpochs(active, _tasks(found[1]), _tasks(found[2]))


def _tuple(found: list[Any]) -> TasksTuple:
    return TasksTuple(*(_tasks(role) for role in found))


def _owners(case: Any) -> TaskOwners:
    def of(role: str, name: str, index: int) -> list[str]:
        found: list[str] = case[role].get(f"{name}_{index}", [])
        return found

    return TaskOwners(
        lambda name, index: next(iter(of("active_owner", name, index)), None),
        lambda name, index: frozenset(of("standby_owners", name, index)),
        lambda name, index: frozenset(of("warmup_owners", name, index)),
    )


@pytest.mark.parametrize("line", lines("reconciliation"), ids=lambda line: f"{line['case']['state']}")
def test_a_members_next_step_is_kafkas(line: Any) -> None:
    case, wanted = line["case"], line["answer"]
    member = StreamsGroupMember(
        "m",
        member_epoch=case["epoch"],
        previous_member_epoch=case["epoch"] - 1,
        state=MemberState(case["state"]),
        process_id=case["process"],
        assigned=_with_epochs(case["assigned"]),
        pending_revocation=_with_epochs(case["pending"]),
    )
    owned = None if case["owned"] is None else _tuple(case["owned"])
    if "fenced" in wanted:
        with pytest.raises(KafkaError) as raised:
            reconcile(member, case["target_epoch"], _tuple(case["target"]), _owners(case), owned)
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
        return
    after = reconcile(member, case["target_epoch"], _tuple(case["target"]), _owners(case), owned)
    assert (after.member_epoch, after.previous_member_epoch) == (wanted["epoch"], wanted["previous"])
    assert after.state == wanted["state"]
    assert after.assigned == _with_epochs(wanted["assigned"])
    assert after.pending_revocation == _with_epochs(wanted["pending"])


def _topology(subtopologies: list[Any]) -> StreamsTopology:
    return StreamsTopology(
        Value(
            epoch=1,
            subtopologies=[
                Value.Subtopology(
                    subtopology_id=one["id"],
                    source_topics=one["sources"],
                    repartition_sink_topics=one["sinks"],
                    repartition_source_topics=[Value.TopicInfo(name=n, partitions=p) for n, p in one["rsources"]],
                    state_changelog_topics=[Value.TopicInfo(name=name) for name in one["changelogs"]],
                    copartition_groups=[
                        Value.CopartitionGroup(source_topics=sources, repartition_source_topics=repartition)
                        for sources, repartition in one["groups"]
                    ],
                )
                for one in subtopologies
            ],
        )
    )


@pytest.mark.parametrize(
    "line", lines("topic_configuration"), ids=lambda line: str(line["answer"].get("status", "other"))
)
def test_a_topologys_topics_are_kafkas(line: Any) -> None:
    case, wanted = line["case"], line["answer"]
    topology = _topology(case["subtopologies"])
    if "error" in wanted:
        with pytest.raises(KafkaError) as raised:
            configure_topics(topology, case["topics"].get, 1)
        assert raised.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
        return
    found = configure_topics(topology, case["topics"].get, 1)
    assert (None if found.problem is None else found.problem.status) == wanted.get("status")
    assert {name: topic.partitions for name, topic in found.to_create.items()} == wanted["create"]
    assert {name: one.tasks for name, one in (found.subtopologies or {}).items()} == wanted["tasks"]
