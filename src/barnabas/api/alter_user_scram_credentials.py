"""AlterUserScramCredentials (API key 51, version 0): set and delete users' SCRAM credentials.

- `metadata.scram_control` has the rules.
- Credentials are stored and described; no listener uses them yet.

Version 0 is flexible (KIP-554).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
