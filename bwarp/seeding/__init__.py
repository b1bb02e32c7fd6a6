"""Find every hit of k-mers, and of their reverse complements, in a reference."""
