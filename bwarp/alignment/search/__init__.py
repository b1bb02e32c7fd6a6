"""Database search: exact local scores of queries against a database."""
