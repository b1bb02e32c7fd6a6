"""The programs of the chain, one a step, each through a file."""
