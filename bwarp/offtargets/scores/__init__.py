"""Scores of off-targets by published tables: CFD (Doench 2016) and MIT (Hsu 2013).

Both are of SpCas9 guides with 20 bases and a PAM that begins with N and may be NGG, at sites
without bulges. For anything else there is no score.
"""
