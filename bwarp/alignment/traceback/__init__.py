"""From the end of an alignment back to its start: CIGARs."""
