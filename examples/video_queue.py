"""A queue of uploaded videos: any number of workers share the jobs of one topic.

    python examples/video_queue.py localhost:9092 uploads

Each job goes to one worker. A worker that is busy takes no job, so that a slow one holds nobody up, and more workers than
partitions have work. What becomes of a job:

- done: the worker accepts it;
- failed for now (the disk is full): the worker releases it, and another attempt follows, by this worker or another one;
- never to succeed (not a video): the worker rejects it, and it is archived, or becomes a dead letter;
- the worker dies: the job comes again when its lock ends, or at once when its connection closes. So a job may be done
  twice, and the work must allow that.

A lock lasts `share.record.lock.duration.ms`, 30 s by default. confluent-kafka cannot renew one (Java can), and one poll
may take several jobs, whose locks run while the first one is done. So set the group's duration above the time of a whole
poll:

    kafka-configs --bootstrap-server localhost:9092 --alter --entity-type groups --entity-name encoders \\
        --add-config share.auto.offset.reset=earliest,share.record.lock.duration.ms=60000
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from confluent_kafka import AcknowledgeType, ShareConsumer

GROUP = "encoders"


class NotYet(Exception):
    """The job failed, and another attempt may succeed."""


def work(
    bootstrap: str,
    topic: str,
    encode: Callable[[str, int], None],
    enough: Callable[[], bool] = lambda: False,
    group: str = GROUP,
) -> None:
    """Take jobs until there are enough.

    Args:
        bootstrap: the cluster's address.
        topic: the jobs.
        encode: does one job; gets its value, and which attempt this is. It raises `NotYet` if the job shall come again, any other
            exception if no attempt can succeed.
        enough: called after every poll; True ends the loop.
        group: the share group of all workers.
    """
    consumer = ShareConsumer({
        "bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit",
    })  # fmt: skip
    consumer.subscribe([topic])
    try:
        while not enough():
            for message in consumer.poll(0.5):
                if message.error():
                    print(message.error().str(), file=sys.stderr)
                    continue
                consumer.acknowledge(message, _outcome(message.value().decode(), message.delivery_count(), encode))
                # After each job: a worker that dies then repeats one job, and not all of its poll.
                for error in consumer.commit_sync(30).values():
                    if error is not None:
                        print(error, file=sys.stderr)  # the lock has ended, for example: the job comes again
    finally:
        consumer.close()


def _outcome(job: str, attempt: int, encode: Callable[[str, int], None]) -> AcknowledgeType:
    try:
        encode(job, attempt)
    except NotYet:
        return AcknowledgeType.RELEASE
    except Exception as raised:
        print(f"{job}: {raised}", file=sys.stderr)
        return AcknowledgeType.REJECT
    return AcknowledgeType.ACCEPT


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/video_queue.py BOOTSTRAP-SERVERS TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        work(sys.argv[1], sys.argv[2], lambda job, attempt: print(f"attempt {attempt}: {job}"))
