"""The changes that the console can make, if it is started with `--write`: a module for each kind of thing, and `table` with all of them.

`change` says what a change is; `barnabas.console.changing` previews it, asks for a name, writes the audit log, and carries it out.
"""
