"""Random variants of a small genome, as VCF and as edits of haplotypes."""

import numpy as np

from tests.helpers.oracles.variants_oracle import trimmed

HEADER = "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO"


def random_lines(contigs, rng, n, longest=4):
    """Return random (contig, position, REF, ALTs) in order: SNVs, MNVs, indels and repeats."""
    lines = []
    for name, text in contigs.items():
        for _ in range(n):
            at = int(rng.integers(0, len(text) - 8))
            removed = int(rng.integers(1, 1 + (longest if rng.random() < 0.4 else 1)))
            ref = text[at : at + removed]
            if "N" in ref:
                continue
            alts = []
            for _ in range(int(rng.choice([1, 1, 1, 2]))):
                size = int(rng.integers(1, 1 + (longest if rng.random() < 0.4 else 1)))
                kept = ref[0] if size != removed or rng.random() < 0.3 else ""
                alt = kept + "".join(rng.choice(list("ACGT"), size - len(kept)))
                # Copies of the next bases: insertions in repeats.
                if rng.random() < 0.2:
                    alt = ref + ref[-1]
                if alt != ref and alt not in alts:
                    alts.append(alt)
            if alts:
                lines.append((name, at + 1, ref, alts))
            # The same variant again, with another base on the left.
            if alts and at and text[at - 1] != "N" and rng.random() < 0.15:
                before = text[at - 1]
                lines.append((name, at, before + ref, [before + alts[-1]]))
    order = list(contigs)
    return sorted(lines, key=lambda line: (order.index(line[0]), line[1]))


def phased(lines, n_samples, rng, haploid=""):
    """Return genotypes, shape=(lines, samples, 2): most of the reference, as in real data.

    On the contig `haploid`, the first sample has one allele; the other is -1.
    """
    genotypes = np.zeros((len(lines), n_samples, 2), int)
    for row, (*_, alts) in enumerate(lines):
        share = rng.choice([0.1, 0.4, 0.8])
        has = rng.random((n_samples, 2)) < share
        genotypes[row] = np.where(has, rng.integers(1, len(alts) + 1, (n_samples, 2)), 0)
        if lines[row][0] == haploid:
            genotypes[row, 0, 1] = -1
    return genotypes


def vcf_text(lines, genotypes=None, separator="|"):
    head = HEADER
    if genotypes is not None:
        head += "\tFORMAT" + "".join(f"\tsample{i}" for i in range(genotypes.shape[1]))
    text = head + "\n"
    for row, (contig, position, ref, alts) in enumerate(lines):
        text += f"{contig}\t{position}\trs{row}\t{ref}\t{','.join(alts)}\t.\tPASS\t."
        if genotypes is not None:
            text += "\tGT" + "".join(
                f"\t{a}{separator}{b}" if b >= 0 else f"\t{a}" for a, b in genotypes[row]
            )
        text += "\n"
    return text


def edits_of(lines):
    """Return edits by contig, in order: start, stop, bases, line, allele, name, all alleles.

    An edit that several lines have is that of the first; it has the lines and alleles of all.
    """
    found = {}
    for row, (contig, position, ref, alts) in enumerate(lines):
        for number, alt in enumerate(alts, 1):
            places = found.setdefault(contig, {})
            name = f"{contig}:{position}:{ref}:{alt}"
            places.setdefault(trimmed(position, ref, alt), []).append((row, number, name))
    return {
        contig: sorted(
            ((*place, *same[0], tuple(one[:2] for one in same)) for place, same in places.items()),
            key=lambda edit: (edit[0], edit[1], edit[3], edit[4]),
        )
        for contig, places in found.items()
    }


def haplotypes_of(lines, genotypes):
    """Return the edits of each haplotype, by contig."""
    columns = genotypes.reshape(len(lines), -1)
    return {
        contig: [
            [
                edit
                for edit in edits
                if any(columns[row, haplotype] == number for row, number in edit[6])
            ]
            for haplotype in range(columns.shape[1])
        ]
        for contig, edits in edits_of(lines).items()
    }
