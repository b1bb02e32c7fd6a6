"""Maximal exact matches between queries and a reference: Drozd's system and MUMmer's job."""
