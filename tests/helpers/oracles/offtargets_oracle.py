"""Sites of guides by trying every alignment, column by column, at every position."""

import functools

IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT",
    "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
OPPOSITE = str.maketrans("ACGTN", "TGCAN")


def opposite(text: str) -> str:
    return text.translate(OPPOSITE)[::-1]


@functools.cache  # in repeats, the same site occurs at many positions
def alignments(guide: str, site: str, mismatches: int, dna: int, rna: int) -> list[tuple]:
    """Return all alignments of a guide to a prefix of a site, both read from the PAM on.

    Each is (edits, bases in bulges, columns, mismatches, dna, rna, bases of the site, guide and
    site as aligned); a column is 0 for a DNA bulge, 1 for an RNA bulge, 2 for a pair.
    """
    found = []

    def extend(i, j, columns, m, d, r, top, bottom):
        if m > mismatches or d > dna or r > rna:
            return
        if i == len(guide):
            if columns[-1] == 2:
                found.append((m + d + r, d + r, columns, m, d, r, j, top, bottom))
            return
        if columns and j < len(site) and site[j] in "ACGT" and columns[-1] != 1:
            extend(i, j + 1, (*columns, 0), m, d + 1, r, top + "-", bottom + site[j])
        if columns:
            extend(i + 1, j, (*columns, 1), m, d, r + 1, top + guide[i], bottom + "-")
        if j < len(site) and site[j] in "ACGT":
            equal = guide[i] == site[j]
            base = site[j] if equal else site[j].lower()
            extend(
                i + 1, j + 1, (*columns, 2), m + (not equal), d, r, top + guide[i], bottom + base
            )

    extend(0, 0, (), 0, 0, 0, "", "")
    return sorted(found)


def pam_at(text: str, border: int, pams: list[str], side: int) -> str | None:
    """Return the bases of the first PAM that matches at a border."""
    for wanted in pams:
        first = border if side == 3 else border - len(wanted)
        found = text[max(first, 0) : border if side == 5 else first + len(wanted)]
        if len(found) == len(wanted) and all(
            base in IUPAC[letter] for base, letter in zip(found, wanted, strict=True)
        ):
            return found
    return None


def sites(contigs: dict, guides: dict, pams: list[str], side: int, *limits, every=False) -> list:
    """Return the rows of all sites, sorted by guide, contig, start, end, strand and alignment.

    A row is (guide, guide aligned, site aligned, PAM, contig, start, end, strand, mismatches, DNA,
    RNA).
    """
    rows = []
    mismatches, dna, rna = limits
    for number, (name, guide) in enumerate(guides.items()):
        for place, (contig, forward) in enumerate(contigs.items()):
            for strand in "+-":
                text = forward if strand == "+" else opposite(forward)
                for border in range(len(text) + 1):
                    if side == 3:
                        rest, read = text[:border][::-1], guide[::-1]
                    else:
                        rest, read = text[border:], guide
                    pam = pam_at(text, border, pams, side)
                    if pam is None:
                        continue
                    found = alignments(read, rest[: len(guide) + dna], mismatches, dna, rna)
                    for alignment in found if every else found[:1]:
                        *_, m, d, r, used, top, bottom = alignment
                        if side == 3:
                            top, bottom = top[::-1], bottom[::-1]
                        start = border - used if side == 3 else border
                        if strand == "-":
                            start = len(text) - start - used
                        rows.append((
                            (number, place, start, start + used, strand, alignment[:3]),
                            (name, top, bottom, pam, contig, start, start + used, strand, m, d, r),
                        ))  # fmt: skip
    return [row for _, row in sorted(rows)]
