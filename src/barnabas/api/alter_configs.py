"""AlterConfigs (API key 33, versions 0-2): replace a resource's whole configuration.

- A setting that the request does not name returns to its default. Deprecated in favour of IncrementalAlterConfigs, still sent by
  librdkafka.
- The broker forwards the request to the active controller, which responds after its records are committed.

Version 1 adds the throttle time, 2 is flexible.
"""

from barnabas.api.serving.forwarding import forward

handle = forward
