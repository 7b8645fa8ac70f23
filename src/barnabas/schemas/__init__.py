"""Schemas by id and by subject: from a schema registry, or from a folder that was filled from one.

| module | holds |
|---|---|
| `schema` | a schema, its references, and where a registry has it |
| `settings` | the options of a registry: addresses, credentials, TLS, patience |
| `exchange` | one request over HTTP: several addresses, retries |
| `registry` | the client: the registry's routes and its caches |
| `known_schemas` | schemas that need no registry: a folder, read and written |
| `pull` | fills a folder from a registry |
| `references` | the schemas that a schema needs, in the order in which a parser takes them |
| `subject_names` | the subject of a topic's keys and values |
| `source` | a registry or a folder, by what a user writes |
| `errors` | what can go wrong, each as one sentence |

A registry is Confluent's, or another one that serves its published routes. HTTP is the standard library's: each schema is asked for
once in a process, so a library with connection pools would bring eight packages and save nothing.
"""
