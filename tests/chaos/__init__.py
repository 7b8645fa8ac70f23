"""The shop's pipeline, killed at random from one seed while order lines come in, and compared with the lines.

- `plan`: which part dies when.
- `from_lines`: what every table and topic must hold, computed straight from the order lines, without Spark.
- `from_shop`: what they hold: tables read from their files, the answers asked in SQL, topics read by a consumer.
- `run`: the broker, Spark and the feeder, and the faults of a plan.

`make chaos ARGS="--seed 7"` repeats a run's plan.
"""
