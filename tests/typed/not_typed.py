"""The blocks of pages that cannot be typed here: the page, the block's first command, and why."""

from __future__ import annotations

_CHECKOUT = "it needs the checkout: make demo, make pipelines and make test are other runs"
_BUILDS = "it builds and installs from the checkout; tests/packaging does, and this run begins with a wheel"
_JAVA = "it starts Java for minutes; tests/packaging and tests/pipelines run it"
_KAFKA = (
    "it needs Apache Kafka's tools and a cluster of Apache Kafka; tests/conform/test_spark_access.py gives these rights"
)
_SECURED = "it needs a cluster with an authorizer and the secret of tokens; tests/cli makes one"
_MACHINES = "it needs other machines"

NOT_TYPED: dict[tuple[str, str], str] = {
    (
        "README.md",
        "make demo      # 50,000 made-up order lines of a shop through a broker and Spark, live in the terminal",
    ): _CHECKOUT,
    (
        "README.md",
        "barnabas demo --data-dir my-shop                        # the pipeline and its tables are in my-shop",
    ): _JAVA,
    (
        "docs/cli.md",
        "barnabas config alter group workers --set share.auto.offset.reset=earliest",
    ): "it asks about each record on a terminal; tests/cli/test_share_run.py answers",
    (
        "docs/cli.md",
        "barnabas token create --renewer-principal User:scheduler --command-config client.properties -o json > token.json",
    ): _SECURED,
    ("docs/cli.md", "barnabas acl create --allow-principal User:alice --operation read --topic orders"): _SECURED,
    ("docs/cli.md", 'eval "$(barnabas completion bash)"     # in ~/.bashrc'): "each line is for another shell",
    (
        "docs/cli.md",
        "barnabas top -b localhost:9092",
    ): "it draws on a whole terminal; tests/console/test_top_screen.py plays it",
    ("docs/cli.md", "barnabas verify --start --time 600 --kill-every 5 --history run.jsonl"): "it takes ten minutes",
    (
        "docs/cli.md",
        "barnabas lake compact --delta /srv/lake/orders",
    ): "it needs tables; tests/cli/test_lake.py makes some",
    (
        "docs/clusters.md",
        "barnabas cluster voter add 4 --at four.example:9093 -b one.example:9092",
    ): _MACHINES,
    (
        "docs/adopt.md",
        "barnabas adopt check -b kafka-1:9092 --command-config admin.properties --config server.properties",
    ): "it needs a cluster of Apache Kafka; tests/conform/test_adopt_check.py has one",
    ("docs/containers.md", "docker compose up --build --detach"): "it needs Docker",
    (
        "docs/delivery-guarantees.md",
        "python examples/exactly_once.py localhost:9092 orders invoices",
    ): "it needs the checkout's examples, and runs until it is stopped; tests/examples runs it",
    ("docs/demo.md", "make demo"): _CHECKOUT,
    (
        "docs/export.md",
        "duckdb -c \"SELECT partition, count(*), max(timestamp) FROM 'yesterday/*.parquet' GROUP BY partition\"",
    ): "DuckDB's own command is not part of barnabas",
    ("docs/from-apache-kafka.md", "bin/kafka-server-stop.sh"): "it needs a directory of Apache Kafka's",
    ("docs/github-actions.md", "make dist"): _BUILDS,
    ("docs/install.md", "make dist"): _BUILDS,
    ("docs/install.md", "pip install ./native"): _BUILDS,
    ("docs/install.md", "make install"): _BUILDS,
    (
        "docs/pipelines.md",
        'make install && source .venv/bin/activate    # or, in an environment of your own: pip install ".[pipelines]"',
    ): _JAVA,
    (
        "docs/pipelines.md",
        'python -m shop run -b localhost:9092 --master "local[2]"    # in the project\'s folder',
    ): _JAVA,
    ("docs/pipelines.md", "python -m shop run --master spark://HOST:7077 -b broker:9092"): _MACHINES,
    (
        "docs/schemas.md",
        "curl http://localhost:8081/schemas/ids/17/schema > schemas/17.avsc",
    ): "it needs a registry whose schemas are as many as those of the page",
    ("docs/schemas.md", "protoc --include_imports --descriptor_set_out=orders.desc orders.proto"): "it needs protoc",
    (
        "docs/security.md",
        "openssl rand -base64 24 > password.txt",
    ): "it formats the directory of the example above again",
    (
        "docs/security.md",
        "barnabas token create --renewer-principal User:scheduler --command-config client.properties",
    ): _SECURED,
    ("docs/security.md", "ssh -N -L 9092:localhost:9092 broker.example.org &"): _MACHINES,
    (
        "docs/security.md",
        "barnabas config alter broker 1 --command-config client.properties"
        " --set listener.name.sasl_ssl.ssl.keystore.location=/etc/kafka/node-2027.pem",
    ): _MACHINES,
    ("docs/security.md", "barnabas topic list -b kafka.example.org:9093 --command-config client.properties"): _MACHINES,
    ("docs/spark-operating.md", "export PYSPARK_PYTHON=$(which python)"): _JAVA,
    ("docs/spark-operating.md", "python3 -m venv executors"): _MACHINES,
    (
        "docs/spark-operating.md",
        'ln -s "$VIRTUAL_ENV" environment         # the driver\'s environment, with the extra spark',
    ): _MACHINES,
    (
        "docs/spark-operating.md",
        "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… AWS_REGION=eu-central-1",
    ): "it needs an object store",
    ("docs/spark-sink.md", "cat replicas.json"): _KAFKA,
    ("docs/spark-sink.md", 'ADMIN="--bootstrap-server broker:9093 --command-config admin.properties"'): _KAFKA,
    ("docs/spark.md", 'ADMIN="--bootstrap-server broker:9093 --command-config admin.properties"'): _KAFKA,
    (
        "docs/systemd.md",
        "sudo useradd --system --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas",
    ): "it needs systemd; tests/packaging checks the unit",
    ("docs/verify.md", "barnabas verify -b localhost:9092 --time 60"): "it takes minutes, ten of them for one command",
}
