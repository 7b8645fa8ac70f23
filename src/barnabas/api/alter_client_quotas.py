"""AlterClientQuotas (API key 49, versions 0-1): set and remove limits of users, client ids and addresses.

- `metadata.client_quota_control` has the rules.
- `validate_only` checks the request and changes nothing.

Version 1 is flexible (KIP-546, KIP-612).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
