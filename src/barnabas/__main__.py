"""`python -m barnabas` is the `barnabas` command. Shell."""

from barnabas.main import main

main()
