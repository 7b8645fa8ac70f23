"""Copies topics of one cluster, the source, into another one, the target: each record once, with its place and its groups.

    source consumer ──▶ one transaction at the target: records, then the notes where they are ──▶ groups are moved

- `runs`: which source offset became which target offset; the arithmetic, without I/O.
- `notes`: what a mirror keeps in the topic `__barnabas_mirrors` of the target; written in the transactions that write the records.
- `progress`: how far a partition is, as the notes say.
- `target_topics`: the topics of the target: created, grown, checked.
- `source_records`: the consumer of the source.
- `groups`: the offsets of groups, translated.
- `mirror`: the whole.

Invariants:

- A record of the source's topics is committed at the target in the transaction that says so. A killed transaction has neither.
- A new run fences the run before it by the transactional id, and reads the notes after that. So the notes are final.
- A group's offset at the target is that of the first record whose source offset is not below the group's. It is never further.

Limits: a transaction of the source over several partitions may become several ones; a rewind of a group is followed only while the mirror
runs. `docs/mirror.md` has the guarantees.
"""
