"""AllocateProducerIds (API key 67, version 0): a broker asks for a block of producer ids.

- The active controller responds after its record is committed (KIP-730).
"""

from barnabas.api.forwarding import forward

handle = forward
