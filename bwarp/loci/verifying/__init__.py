"""Hits of parts become loci: a bound, then edit distances."""
