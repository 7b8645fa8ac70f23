"""The parts that all handlers share: the way of a request to its handler and of the response back, its context, its costs."""
