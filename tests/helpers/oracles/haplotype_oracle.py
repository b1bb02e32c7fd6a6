"""Slow and obvious: haplotypes out of VCF lines, places of reads in them, edit distance."""


def haplotypes(sequences, vcf_lines):
    """Both haplotypes of every contig as lists of (letter, reference position).

    An inserted letter has position None. `sequences` maps contig names to letters.
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
            haplotype += [(letter, None) for letter in after[1:]]
            done[contig][which] = at + len(before)
    for name, sequence in sequences.items():
        for which in (0, 1):
            rest = range(done[name][which], len(sequence))
            result[name][which].extend((sequence[k], k) for k in rest)
    return result


def reverse_complement(letters):
    return letters[::-1].translate(str.maketrans("ACGT", "TGCA"))


def stretches(haplotype, letters, start, stop):
    """Begins of the stretches of a haplotype that spell `letters` over reference start to stop."""
    text = "".join(letter for letter, _ in haplotype)
    found = []
    at = text.find(letters)
    while at >= 0:
        places = [k for _, k in haplotype[at : at + len(letters)] if k is not None]
        if places and (places[0], places[-1] + 1) == (start, stop):
            found.append(at)
        at = text.find(letters, at + 1)
    return found


def differences(stretch, sequence):
    """Bases by which a stretch of a haplotype differs from the reference it spans."""
    places = [k for _, k in stretch if k is not None]
    inserted = len(stretch) - len(places)
    deleted = places[-1] + 1 - places[0] - len(places)
    changed = sum(1 for letter, k in stretch if k is not None and letter != sequence[k])
    return inserted + deleted + changed


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (letter != other))
    return row[-1]
