"""Share groups (KIP-932): their members, their assignments and their offsets."""
