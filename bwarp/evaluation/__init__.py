"""How right mapping is: against the truth, and against other mappers."""
