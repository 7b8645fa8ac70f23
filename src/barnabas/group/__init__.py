"""What groups of every type share: their settings, their epochs and their committed offsets (control plane)."""
