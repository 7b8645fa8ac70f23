"""Streams groups (KIP-1071): topologies, tasks, internal topics."""
