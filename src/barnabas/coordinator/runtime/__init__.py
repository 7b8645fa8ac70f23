"""The runtime that every coordinator lives on: operations in, records to a log, responses out (control plane)."""
