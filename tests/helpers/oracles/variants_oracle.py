"""Sites on haplotypes that are written out, and the same from tables of bwarp.

A haplotype is a list of pieces (sequence, start in the reference, stop, edit or None).
"""

import itertools

from tests.helpers.oracles.offtargets_oracle import sites


def trimmed(position, ref, alt):
    """Return an edit (start, stop, bases), 0-based, of an allele of VCF."""
    start = position - 1
    while ref and alt and ref[0] == alt[0]:
        ref, alt, start = ref[1:], alt[1:], start + 1
    while ref and alt and ref[-1] == alt[-1]:
        ref, alt = ref[:-1], alt[:-1]
    return start, start + len(ref), alt


def clash(one, other):
    if one[0] == one[1] == other[0] == other[1]:
        return True
    return one[0] < other[1] and other[0] < one[1]


def applied(edits):
    """Return the edits of a haplotype, in order, without those that overlap an earlier one."""
    kept = []
    for edit in edits:
        if not any(clash(edit, other) for other in kept):
            kept.append(edit)
    return kept


def written_out(contig, edits):
    """Return a haplotype, and for each base the start and end of it in the reference."""
    text, starts, ends, at = "", [], [], 0
    for start, stop, bases, *_ in [*edits, (len(contig), len(contig), "")]:
        text += contig[at:start]
        starts += range(at, start)
        ends += range(at + 1, start + 1)
        text += bases
        starts += [min(start + i, stop) for i in range(len(bases))]
        ends += [min(start + i + 1, stop) for i in range(len(bases))]
        at = stop
    return text, starts, ends


def touched(edits, left, right):
    """Return the edits in a stretch of a haplotype: with its bases, or on both sides of a gap."""
    found, shift = [], 0
    for edit in edits:
        start, stop, bases = edit[:3]
        place = start + shift
        if place < right and place + len(bases) > left:
            found.append(edit)
        shift += len(bases) - (stop - start)
    return tuple(found)


def alternative_sites(contigs, guides, pams, side, limits, haplotypes, every=False):
    """Return alternative sites and the haplotypes that have each.

    Parameters
    ----------
    haplotypes : dict
        Lists of edits (start, stop, bases, ...) by contig, one list per haplotype, in order.

    Returns
    -------
    found : dict
        Numbers of haplotypes by (guide, guide aligned, site aligned, PAM, contig, start, end,
        strand, mismatches, DNA, RNA, edits).
    """
    found = {}
    for contig, lists in haplotypes.items():
        reference = contigs[contig]
        kinds = {}
        for number, edits in enumerate(lists):
            kinds.setdefault(tuple(applied(edits)), []).append(number)
        for edits, numbers in kinds.items():
            if not edits:
                continue
            text, starts, ends = written_out(reference, edits)
            for row in sites({contig: text}, guides, pams, side, *limits, every=every):
                name, top, bottom, pam, _, start, end, strand, *counts = row
                follows = (strand == "+") == (side == 3)
                left = start - (0 if follows else len(pam))
                right = end + (len(pam) if follows else 0)
                its = touched(edits, left, right)
                if not its:
                    continue
                lifted, lifted_end = starts[start], ends[end - 1]
                border = lifted_end if follows else lifted
                begin = border - ((end - left) if follows else (start - left))
                if begin >= 0 and reference[begin : begin + right - left] == text[left:right]:
                    continue
                key = (name, top, bottom, pam, contig, lifted, lifted_end, strand, *counts, its)
                found.setdefault(key, set()).update(numbers)
    return found


def combinations(edits):
    """Return every set of edits that can be applied together; edits end with their line."""
    lists = []
    for size in range(len(edits) + 1):
        for some in itertools.combinations(edits, size):
            if len({edit[3] for edit in some}) == size and applied(some) == list(some):
                lists.append(list(some))
    return lists
