"""Transactional ids and their transactions: states, records, markers, producer ids (control plane)."""
