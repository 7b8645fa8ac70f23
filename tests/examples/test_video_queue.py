"""Two workers share the jobs of one partition; one of them dies with a job in its hands."""

from __future__ import annotations

from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.examples.stage import KILLED, ORDERS, PATIENCE_SECONDS, VICTIM, Stage

pytestmark = [pytest.mark.conform, pytest.mark.timeout(5 * PATIENCE_SECONDS)]

LATER, NEVER = ORDERS[1], ORDERS[5]
WORKER = """
def encode(job, attempt):
    if job == {later!r} and attempt == 1:
        raise example.NotYet
    if job == {never!r}:
        print("rejected", file=book)
        raise ValueError("not a video")
    if {deadly} and job == {victim!r}:
        die()
    print(job, file=book)
example.work({bootstrap!r}, {topic!r}, encode, enough, {group!r})
"""


def test_each_job_is_done_though_a_worker_dies(stage: Stage) -> None:
    resource = ConfigResource(ResourceType.GROUP, stage.name)
    resource.add_incremental_config(
        ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    )
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(PATIENCE_SECONDS)

    def worker(deadly: bool) -> str:
        return WORKER.format(
            later=LATER,
            never=NEVER,
            victim=VICTIM,
            deadly=deadly,
            bootstrap=stage.bootstrap,
            topic=stage.orders,
            group=stage.name,
        )

    dying = stage.start("video_queue", worker(deadly=True))
    assert dying.wait(PATIENCE_SECONDS) == KILLED
    others = [stage.start("video_queue", worker(deadly=False)) for _ in range(2)]
    stage.run_until_processed({*ORDERS, "rejected"} - {NEVER}, others)
    assert Counter(stage.processed()) == Counter({*ORDERS, "rejected"} - {NEVER})
