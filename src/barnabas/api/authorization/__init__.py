"""The rights that each request needs: the questions to the authorizer, API by API.

    dispatch ──► check of the API ──► handler            what a broker decides, and what a controller decides by itself
    client's request ──► LocalController ──► check ──►   what the active controller decides, wherever it came in (`controllers`)

- A check runs around its handler: it refuses the request, or takes the denied elements out, calls the handler with the others, and puts
  the refusals into the response. So a handler knows nothing of rights, unless what it needs is only known on the way: then it has an
  `asker` too (Fetch, AddPartitionsToTxn, ShareFetch, StreamsGroupHeartbeat).
- Without `authorizer.class.name` a node has no authorizer and imports nothing of this; everything is allowed.
- An API without a check is refused. `api/authorization.tsv` has every row, and `tests/api/authorization/test_checks_table`
  holds it equal to the tables `BROKER_CHECKS`, `CONTROLLER_CHECKS` and `DECIDED_CHECKS`.

Sources: Kafka's `KafkaApis`, `ControllerApis`, `AuthHelper`, `AclApis`.
"""
