"""The Spark sink's own code in the simulated world: drivers, tasks, checkpoints, and what a reader finds in the end."""
