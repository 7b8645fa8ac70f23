"""RemoveRaftVoter (API key 81, version 0): take a controller out of the quorum's voters.

- Rejected with UNSUPPORTED_VERSION: see `api.voter_changes`.

Version 0 is KIP-853's.
"""

from barnabas.api.voter_changes import reject_voter_change

handle = reject_voter_change
