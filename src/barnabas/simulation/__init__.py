"""Brokers, clients and their network in one thread."""
