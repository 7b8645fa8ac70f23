"""Writing into topics with Spark, exactly once.

writers ──► task_writer ──► task_producers          a transaction a task
       │           └──► encoder ──► digest          what the batch was
       └──► protocol ──► decisions                  the driver decides which transactions count, and ends them
                   ├──► repeated_batch              what is skipped is compared
                   └──► sink_transactions           what is left open is fenced
"""
