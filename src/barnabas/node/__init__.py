"""A node put together from the other rooms: its broker, the services of that broker, and the order of its start and its stop."""
