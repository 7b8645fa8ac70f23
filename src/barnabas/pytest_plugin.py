"""Pytest fixtures: a real broker inside a test."""
