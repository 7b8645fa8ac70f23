"""The data directory of a node: its identity, its format, and what the start finds in it."""
