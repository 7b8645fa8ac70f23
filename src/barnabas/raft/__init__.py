"""Raft as Kafka speaks it (KIP-595, KIP-853, KIP-996), without I/O.

`RaftNode` is the state machine: each input returns a `Ready` that lists what must be made durable, appended, and
applied, in that order. `RaftDriver` does so over the seams of `seams`: a log, a store for the election state, listeners.
`quorum` holds the arithmetic of majorities, `roles` the table of roles and the moves between them, `voter_set_history`
who votes from which offset on.

Invariants (each asserted where it could break)
- The epoch of a node never goes back, and a node votes for at most one candidate in an epoch.
- An epoch has at most one leader; a leader never alters what its log already holds.
- A leader begins its epoch with a LeaderChange record and counts nothing as committed before that record is.
- The high watermark never goes back, and at most the majority's flushed end.
- A flush counts for the log as it was when the flush began; after a truncation it counts for nothing.
- Election state is durable before anything that relies on it leaves the node.

Limits: one voter. Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch between voters are not implemented yet; a node with
other voters does not start. Arithmetic and roles are general.
"""
