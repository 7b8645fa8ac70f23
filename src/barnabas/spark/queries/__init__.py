"""Queries while they run: their start, their progress, their metrics, retries and dead letters."""
