"""The needs of a workload: partitions, brokers, disk, network and money, each with its formula and the rule that it follows.

Pure arithmetic; `barnabas plan` asks the questions and prints the answers. Rates are bytes a second, sizes bytes, in decimal units.
"""
