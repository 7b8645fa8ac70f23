"""`python -m barnabas` is the `barnabas` command."""

from barnabas.main import main

main()
