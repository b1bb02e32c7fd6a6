"""Data frames with the columns of the tables: texts are str, whole numbers int64."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

__all__ = ["DTYPES", "frame", "named"]

#: The columns of all tables with a header, and what they hold.
DTYPES = {
    **dict.fromkeys(("query", "strand", "contig", "reference", "target"), "str"),
    **dict.fromkeys(("cigar", "reason", "site"), "str"),
    **dict.fromkeys(("guide", "guide_aligned", "site_aligned", "pam", "annotation"), "str"),
    **dict.fromkeys(("sequence", "complete"), "str"),
    **dict.fromkeys(("left", "right", "forward", "reverse"), "str"),
    **dict.fromkeys(("step", "counted"), "str"),
    **dict.fromkeys(("kmer_start", "position", "mismatches", "hits", "pair", "score"), "int64"),
    **dict.fromkeys(("query_start", "query_end", "target_end", "start", "end"), "int64"),
    **dict.fromkeys(("length", "windows", "distance", "locus_edits"), "int64"),
    **dict.fromkeys(("insertions", "deletions", "loci"), "int64"),
    **dict.fromkeys(("cut", "dna_bulge", "rna_bulge", "seed_mismatches", "alignment"), "int64"),
    **dict.fromkeys(("sites", "products", "forward_sites", "reverse_sites", "number"), "int64"),
    **dict.fromkeys(("left_mismatches", "right_mismatches"), "int64"),
    **dict.fromkeys(("cfd", "mit", "cfd_specificity", "mit_specificity", "seconds"), "float64"),
    **dict.fromkeys(("similarity", "evalue", "bits"), "float64"),
}


def frame(columns: Sequence[str], parts: Iterable[Sequence]) -> pd.DataFrame:
    """A frame of parts, each with an array or a list for every column, one under the other."""
    whole = list(zip(*parts, strict=True)) or [[] for _ in columns]
    return pd.DataFrame(
        {name: _series(name, column) for name, column in zip(columns, whole, strict=True)}
    )


def _series(name: str, parts: Sequence) -> pd.Series:
    kind = object if DTYPES[name] == "str" else DTYPES[name]
    values = np.concatenate([np.asarray(part, kind) for part in ((), *parts)])
    return pd.Series(values, dtype=DTYPES[name])


def named(names: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    """The name of every number, shape=(n,), dtype=object."""
    return np.array([*names, ""], object)[numbers]
