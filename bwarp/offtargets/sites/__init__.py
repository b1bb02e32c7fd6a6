"""Sites of the genome beside a PAM that fit guides, and how they align."""
