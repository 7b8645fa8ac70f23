"""The console: pages about Kafka clusters, made by the server from what the commands print.

`command` is `barnabas console`. `app` makes the pages' application, which is an ordinary client of its clusters; `guard` stands before
it and lets in who may see it. A page is a value (`page`), which becomes HTML or JSON; the JSON has the field names of the command that
shows the same. `sampler` looks at a cluster while somebody watches its overview. `search/` finds records, and `decoding/` says what is in
them; `records` and `tail` show them, and `export` writes them to a file.

The console changes nothing unless it is started with `--write`. Then `changes` has what it can change, and `changing` is the one way to do
it: form, preview, name to type, `audit_log`, result. It imports nothing of the broker.
"""
