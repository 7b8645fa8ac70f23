"""DeleteTopics (API key 20, versions 1-6): delete topics by name or id.

- Errors are per topic.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 5 adds error messages, 6 topic ids (KIP-516).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
