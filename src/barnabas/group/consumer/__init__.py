"""Consumer groups (KIP-848): heartbeats, assignors, reconciliation, and the way from and to the classic protocol."""
