"""Haplotypes from VCF lines, positions of reads in them, and edit distances, the slow way."""


def haplotypes(sequences, vcf_lines):
    """Return both haplotypes of each contig as lists of (base, reference position).

    An inserted base has position None. `sequences` maps contig names to bases.
    """
    result = {name: ([], []) for name in sequences}
    done = {name: [0, 0] for name in sequences}
    for line in vcf_lines:
        if line.startswith("#"):
            continue
        contig, position, _, before, after, _, _, _, _, genotype = line.rstrip("\n").split("\t")
        at = int(position) - 1
        sequence = sequences[contig]
        assert sequence[at : at + len(before)] == before
        assert before != after
        for which in (0, 1):
            if genotype.split("|")[which] == "0":
                continue
            haplotype = result[contig][which]
            assert at >= done[contig][which]
            haplotype += [(sequence[k], k) for k in range(done[contig][which], at)]
            haplotype.append((after[0], at))
            haplotype += [(base, None) for base in after[1:]]
            done[contig][which] = at + len(before)
    for name, sequence in sequences.items():
        for which in (0, 1):
            rest = range(done[name][which], len(sequence))
            result[name][which].extend((sequence[k], k) for k in rest)
    return result


def reverse_complement(bases):
    return bases[::-1].translate(str.maketrans("ACGT", "TGCA"))


def stretches(haplotype, bases, start, stop):
    """Return the starts of parts of a haplotype that spell `bases` over reference start to stop."""
    text = "".join(base for base, _ in haplotype)
    found = []
    at = text.find(bases)
    while at >= 0:
        positions = [k for _, k in haplotype[at : at + len(bases)] if k is not None]
        if positions and (positions[0], positions[-1] + 1) == (start, stop):
            found.append(at)
        at = text.find(bases, at + 1)
    return found


def differences(stretch, sequence):
    """Count the differences between a part of a haplotype and the reference that it spans."""
    positions = [k for _, k in stretch if k is not None]
    inserted = len(stretch) - len(positions)
    deleted = positions[-1] + 1 - positions[0] - len(positions)
    changed = sum(1 for base, k in stretch if k is not None and base != sequence[k])
    return inserted + deleted + changed


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, base in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (base != other))
    return row[-1]
