"""UpdateRaftVoter (API key 82, version 0): a voter tells its endpoints and its versions of kraft.version.

- Rejected with UNSUPPORTED_VERSION: see `api.voter_changes`.

Version 0 is KIP-853's.
"""

from barnabas.api.voter_changes import reject_voter_change

handle = reject_voter_change
