"""Raft as Kafka speaks it (KIP-595, KIP-853, KIP-996), without I/O.

`RaftNode` is the state machine of one member of a quorum, or of an observer: each input returns a `Ready` that lists what
must be cut off, made durable, appended, applied, sent and answered, in that order. `RaftDriver` does so over the seams of
`seams`: a log, a store for the election state, listeners; `Peers` carry the requests to other nodes.

    quorum_state      the role of the moment, and its moves; a module per role: `unattached`, `prospective`, `candidate`,
                      `leader`, `resigned`, `follower`; `roles` is the table of the moves that are allowed
    local_log         where the log ends, how far it is durable, where it differs from another log
    peer_messages     requests and answers; `request_manager` keeps one request under way to each
    request_messages  the same as Kafka's messages, and back; `answer_messages` for the answers, `snapshot_messages` for snapshots
    request_checks    which error a request has for a node of a role
    snapshot_fetch    a snapshot on its way from the leader, piece after piece (KIP-630)
    ballot, quorum    who granted a vote; the arithmetic of majorities
    fetch_purgatory   fetches that wait for news
    role_requests     the requests of a node in its role
    voter_set_history which voters there are from which offset on; `start_of_epoch` has the records that begin an epoch
    voter_changes     voters are added, removed and updated (KIP-853); `kraft_version_upgrade` makes that possible
                      in a quorum that began with `controller.quorum.voters`

Invariants (each asserted where it could break)
- The epoch of a node never goes back, and a node votes for at most one candidate in an epoch.
- An epoch has at most one leader; a leader never alters what its log already holds.
- A leader begins its epoch with a LeaderChange record and counts nothing as committed before that record is.
- The high watermark never goes back, and is at most the end that a majority has flushed.
- A flush covers the log as it was when the flush began; after a truncation it covers nothing.
- Election state is durable before anything that relies on it leaves the node.

- A voter set is in force as soon as it is in the log, and a truncation takes it back; a change begins only when the last one is committed.
"""
