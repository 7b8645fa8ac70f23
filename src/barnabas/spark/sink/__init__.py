"""Writing into topics with Spark, exactly once.

writers ──► task_writer ──► task_producers     a transaction a task
       └──► protocol ──► decisions             the driver decides which transactions count, and ends them
"""
