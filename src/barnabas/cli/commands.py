"""Which commands there are and where each is found; `barnabas.main` merges this and imports a module when it is named."""

COMMANDS: dict[str, str] = {
    "topic": "barnabas.cli.topic:topic",
    "produce": "barnabas.cli.produce:produce",
    "consume": "barnabas.cli.consume:consume",
    "group": "barnabas.cli.group:group",
    "txn": "barnabas.cli.txn:txn",
    "config": "barnabas.cli.config:config",
    "verify": "barnabas.cli.verify:verify",
    "completion": "barnabas.cli.completion:completion",
}
