"""Frames that no client sends: through the decoder, through the dispatcher in virtual time, and over sockets. `make fuzz`."""
