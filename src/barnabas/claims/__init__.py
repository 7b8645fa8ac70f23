"""Large messages by reference: the payload in a folder or an object store, a small claim in the record.

    store = open_store("s3://payloads/kafka")
    producer = ClaimProducer(Producer(settings), store)
    producer.produce("videos", video)             # 10 MiB go to the store, 200 bytes to the topic
    consumer = ClaimConsumer(Consumer(settings), store)
    video = consumer.poll().value()               # read from the store, its size and its SHA-256 compared

`docs/large-messages.md` says when to choose this, and what it costs.

**Names.** A payload is called `CLUSTER/TOPIC/SHA-256`: its content names it, below the cluster's id and the topic. So
one store serves many clusters and topics, and a sweep of one topic never lists another one's payloads. The name follows
from the value alone:

- the library's retries send one claim again; an application that calls `produce` again, and a task that Spark repeats,
  store the payload under the same name and write the same record. The exactly-once sink compares repeated batches, and
  unique names would make each repeated batch another one;
- a transaction that aborts leaves its claim in the log, and its payload in the store until retention deletes the claim.

**Order.** The payload is durable before the record is sent. A kill between the two leaves a payload without a record,
and no record without its payload.

**Deletion.** No count of references: a sweep finds out which payloads the records of a topic name, and deletes the
others.

1. It lists the payloads. Those older than the grace are candidates.
2. It asks where the logs end and reads all records up to there, those of open and aborted transactions too. Each claim
   takes its payload off the candidates. A producer sends the record soon after it stored the payload, within its
   delivery timeout, and the grace is longer: so the log has the claim of a candidate by now, or will never have it.
3. For each candidate that is left it writes a marker, `CLUSTER/TOPIC/condemned/NAME`. Then it looks again: a payload
   that was stored again since step 1 stays. Otherwise the sweep deletes it.

Step 3 has its marker because a name may come again: a producer may store the same content while the sweep is about to
delete it. The producer writes the payload, then looks for the marker, and takes the name `NAME-1` if there is one. The
sweep writes the marker, then looks at the payload. Whichever of the two writes last sees what the other one wrote, so
no claim loses its payload. A marker stays for the grace, and a later sweep deletes it.

- A sweep that is killed anywhere leaves markers and payloads, and both are the next sweep's work.
- A payload that no record needs lives as long as: retention, the grace, and the time between two sweeps.

**Limits.** The store must show a write to the next reader (S3 and local file systems do; a network file system that
caches attributes may not), must tell upper from lower case, and the clocks of store and sweep must agree to within the
grace. A process that is stopped between two calls for longer than the grace is outside of the argument.

**Trust.** A claim comes from any producer that may write to the topic. It has a path, never a URI: `claim` checks its
form, so that it can name only a payload of the configured store.

- `claim`: the claim and its layout; `payloads`: stores and loads one payload; `errors`: how both fail.
- `payload_store`: the operations of a store; `folder_store`, `object_store`: the two kinds; `store`: opens one.
- `producer`, `consumer`: the wrappers. `sweep`, `audit`: the commands; `topic_records`: the records that they read.

A folder needs no package; an object store needs obstore, the extra `claims`.

Sources: the claim check pattern (Hohpe and Woolf, Enterprise Integration Patterns).
"""

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.claims.claim import Claim as Claim
    from barnabas.claims.consumer import ClaimConsumer as ClaimConsumer
    from barnabas.claims.consumer import ClaimedMessage as ClaimedMessage
    from barnabas.claims.errors import ClaimError as ClaimError
    from barnabas.claims.errors import PayloadError as PayloadError
    from barnabas.claims.errors import StoreError as StoreError
    from barnabas.claims.producer import ClaimProducer as ClaimProducer
    from barnabas.claims.store import open_store as open_store

__all__ = [
    "Claim", "ClaimConsumer", "ClaimError", "ClaimProducer", "ClaimedMessage", "PayloadError", "StoreError", "open_store",
]  # fmt: skip

__getattr__ = imported_when_used(
    __name__,
    Claim="barnabas.claims.claim",
    ClaimConsumer="barnabas.claims.consumer",
    ClaimError="barnabas.claims.errors",
    ClaimProducer="barnabas.claims.producer",
    ClaimedMessage="barnabas.claims.consumer",
    PayloadError="barnabas.claims.errors",
    StoreError="barnabas.claims.errors",
    open_store="barnabas.claims.store",
)
