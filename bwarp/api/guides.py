"""bwarp.list_guides: the CRISPR guides of sequences, as bwarp guides lists them."""

import os
from collections.abc import Sequence

import pandas as pd

from bwarp.api.engine import threads_or_all
from bwarp.api.index import Index, arrays_or_chunks_of, reference_of
from bwarp.api.sequences import Sequences, check_files, listed
from bwarp.api.tables import frame
from bwarp.offtargets import guide_list
from bwarp.offtargets.guide_list import GuideFilter, chosen_regions
from bwarp.offtargets.guides import parse_pam
from bwarp.options.finding import GUIDES

ROWS = ("guide", "sequence", "pam")


def list_guides(
    reference: Index | Sequences,
    *,
    region: str | Sequence[str] | None = None,
    bed: str | os.PathLike | None = None,
    pam: str = "NGG",
    pam_side: int = 3,
    length: int = 20,
    min_gc: int = 0,
    max_gc: int = 100,
    without_tttt: bool = False,
    threads: int | None = None,
) -> pd.DataFrame:
    """List every guide next to a PAM, on both strands of sequences.

    Parameters
    ----------
    reference : Index, path, or sequences in memory
        An index, the folder of one, a FASTA file, or contigs.
    region : str or sequence of str, optional
        List only guides in these regions: contig, or contig:from-to, 1-based and inclusive.
    bed : path, optional
        List only guides in the regions of a BED file.
    pam : str, default: "NGG"
        PAM in IUPAC letters, several separated by commas, or "none".
    pam_side : {3, 5}
        End of the protospacer at which the PAM lies.
    length : int, default: 20
        Length of a guide, 15 to 40.
    min_gc, max_gc : int, default: 0 and 100
        Minimum and maximum percentage of C and G in a guide.
    without_tttt : bool, default: False
        Leave out guides with four T in a row.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    guides : DataFrame
        Columns guide, sequence and pam, by contig, position and strand. The name of a guide is its
        position: chr20:1000-1020:+ has the bases from 1000 to 1020, 0-based and half-open.
    """
    wanted = GuideFilter(
        GUIDES["min_gc"].check(min_gc), GUIDES["max_gc"].check(max_gc), without_tttt
    )
    searched = parse_pam(GUIDES["pam"].check(pam), GUIDES["pam_side"].check(pam_side))
    length = GUIDES["length"].check(length)
    check_files(bed)
    threads = threads_or_all(threads)
    if isinstance(reference, str | os.PathLike) and os.path.isdir(reference):
        reference = Index.open(reference)
    if isinstance(reference, Index):
        contigs = arrays_or_chunks_of(reference).reference
    else:
        contigs = reference_of(reference, threads)
    regions = chosen_regions(listed(region), bed, contigs)
    found = guide_list.list_guides(contigs, regions, searched, length, wanted)
    columns = [(part.names(contigs), part.sequences(), part.pam_texts()) for part in found]
    return frame(ROWS, columns)
