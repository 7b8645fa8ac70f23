"""CreateTopics (API key 19, versions 2-7): create topics.

- -1 partitions or replicas take the broker's defaults.
- Errors are per topic; a name that occurs twice in a request gets one error, as in Kafka.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 4 adds the defaults (KIP-464), 5 the created topic's configuration (KIP-525), 7 the topic id (KIP-516).
"""

from barnabas.api.serving.forwarding import forward

handle = forward
