"""Share groups (KIP-932): their members, and the delivery state of their partitions (control plane)."""
