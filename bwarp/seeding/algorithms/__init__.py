"""The searches: exact, by search schemes, and by backtracking."""
