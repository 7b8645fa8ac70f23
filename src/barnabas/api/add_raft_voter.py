"""AddRaftVoter (API key 80, versions 0-1): make a controller a voter of the quorum.

- Rejected with UNSUPPORTED_VERSION: see `api.voter_changes`.

Version 0 is KIP-853's, 1 acknowledges when the record is committed (KIP-1186).
"""

from barnabas.api.voter_changes import reject_voter_change

handle = reject_voter_change
