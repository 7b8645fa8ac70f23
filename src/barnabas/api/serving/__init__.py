"""What all handlers share and no API is: the way of a request to its handler and of the response back, its context, its costs."""
