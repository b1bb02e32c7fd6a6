"""Rows of sites and of guides, and the tables of them."""
