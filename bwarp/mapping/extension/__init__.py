"""From candidates to scored hits."""
