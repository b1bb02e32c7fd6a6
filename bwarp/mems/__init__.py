"""Maximal exact matches between queries and a reference, as found by Drozd et al. and MUMmer."""
