"""The settings of a node: where they come from, what they mean, which contradict each other, and what a node takes from outside."""
