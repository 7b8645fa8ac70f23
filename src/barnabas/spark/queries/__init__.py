"""Queries while they run: their start, their progress and their metrics."""
