"""The programs of the chain, one per step, with files between them."""
