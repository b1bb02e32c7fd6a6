"""Parse lines of VCF: columns, alleles and genotypes, in compiled code."""

from typing import NamedTuple

import numpy as np

from bwarp.io.line_scan import find_byte, line_end
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import VECTOR_BYTES, equal, load, mask_bits
from bwarp.sequence import CODE_OF_BYTE
from bwarp.variants.edits import LONGEST_EDIT

#: Columns before the genotypes: CHROM POS ID REF ALT QUAL FILTER INFO FORMAT.
FIXED = 9

#: Why an allele is not searched; 0 if it is.
SEARCHED, SYMBOLIC, TOO_LONG, WRONG_REF, AMBIGUOUS, BEYOND = range(6)

#: Problems of genotypes.
WELL, SAMPLE_COUNT, BAD_GENOTYPE, PLOIDY = range(4)

#: Kinds of alleles. One that nobody carries counts as phased.
PHASED, UNPHASED, NO_GENOTYPES = range(3)

_TAB, _FEED, _COLON, _COMMA, _DOT, _SLASH, _BAR = 9, 10, 58, 44, 46, 47, 124
_ZERO, _NINE = 48, 57
_MISSING = -1

_VECTOR = np.uint64(VECTOR_BYTES)
_ALL_EQUAL = np.uint64((1 << VECTOR_BYTES) - 1)

#: Genotypes of haplotypes that all have the allele of the reference.
_ALL_REFERENCE = np.frombuffer(b"0|0\t" * (VECTOR_BYTES // 4), np.uint8)


class Bases(NamedTuple):
    """The genome, and one contig of it."""

    packed: np.ndarray
    segment_starts: np.ndarray
    segment_stops: np.ndarray


class Genotypes(NamedTuple):
    """What genotypes tell of alleles.

    Attributes
    ----------
    carriers : ndarray, shape=(n, n_words), dtype=uint64
        The haplotypes with the allele; zeros at first.
    kinds : ndarray, shape=(n,), dtype=uint8
        `PHASED`, `UNPHASED` or `NO_GENOTYPES`.
    ploidies : ndarray, shape=(n,), dtype=int64
        The row of `present` of each allele.
    present : ndarray, shape=(n, n_words), dtype=uint64
        The haplotypes that exist, a row for each change.
    """

    carriers: np.ndarray
    kinds: np.ndarray
    ploidies: np.ndarray
    present: np.ndarray


@compiled
def after_last_line(data):
    """Return the position after the last line feed, or 0."""
    at = data.size
    while at > 0 and data[at - 1] != _FEED:
        at -= 1
    return at


@compiled
def split_lines(data, columns):
    """Write the start of the first nine columns and the ends of the fixed part and of the line.

    Parameters
    ----------
    data : ndarray, dtype=uint8
        Whole lines.
    columns : ndarray, shape=(n, FIXED + 2), dtype=int64

    Returns
    -------
    n_lines : int
        Lines that are not empty.
    bad : int
        The first line with fewer than eight columns, or -1.
    """
    at = 0
    row = 0
    bad = -1
    while at < data.size:
        feed, stop = line_end(data, at)
        if stop > at:
            start = at
            n = 0
            while n < FIXED and start <= stop:
                columns[row, n] = start
                start = find_byte(data, start, stop, _TAB) + 1
                n += 1
            if n < FIXED - 1 and bad < 0:
                bad = row
            columns[row, FIXED] = start - 1
            if n < FIXED:
                columns[row, FIXED - 1] = stop + 1
                columns[row, FIXED] = stop
            columns[row, FIXED + 1] = stop
            row += 1
        at = feed + 1
    return row, bad


@compiled
def same_contig(data, columns, row):
    """Return whether a line has the contig of the line before."""
    length = columns[row, 1] - columns[row, 0]
    if length != columns[row - 1, 1] - columns[row - 1, 0]:
        return False
    differing = 0
    for i in range(length):
        differing += data[columns[row, 0] + i] != data[columns[row - 1, 0] + i]
    return differing == 0


@compiled
def contig_changes(data, columns, n_lines):
    """Return the lines whose contig differs from that of the line before, and the first line."""
    changes = np.empty(n_lines, np.int64)
    count = 0
    for row in range(n_lines):
        if row == 0 or not same_contig(data, columns, row):
            changes[count] = row
            count += 1
    return changes[:count]


@compiled
def positions_of(data, columns, n_lines):
    """Return POS of every line, or -1 if it is not a whole number."""
    positions = np.empty(n_lines, np.int64)
    for row in range(n_lines):
        value = 0
        first, last = columns[row, 1], columns[row, 2] - 1
        if last <= first or last - first > 12:
            value = -1
        for at in range(first, last):
            if value < 0 or data[at] < _ZERO or data[at] > _NINE:
                value = -1
                break
            value = value * 10 + data[at] - _ZERO
        positions[row] = value
    return positions


@compiled
def count_alleles(data, columns, n_lines):
    """Return the number of ALT alleles of all lines."""
    total = n_lines
    for row in range(n_lines):
        for at in range(columns[row, 4], columns[row, 5] - 1):
            total += data[at] == _COMMA
    return total


@compiled
def list_alleles(data, columns, positions, begin, end, genome, found):
    """List the ALT alleles of lines of one contig.

    Parameters
    ----------
    positions : ndarray, dtype=int64
        POS, 1-based.
    begin, end : int
        Where the contig begins and ends in the genome.
    genome : Bases
    found : ndarray, shape=(n_alleles, 7), dtype=int64
        Line, number of the allele, start, stop, start and end of the bases in `data`, and why it
        is not searched.

    Returns
    -------
    count : int
    """
    count = 0
    for row in range(positions.size):
        ref_first, ref_last = columns[row, 3], columns[row, 4] - 1
        at = begin + positions[row] - 1
        ref_state = _state_of_ref(data, ref_first, ref_last, at, begin, end, genome)
        first, alt_end = columns[row, 4], columns[row, 5] - 1
        allele = 0
        while first <= alt_end:
            last = find_byte(data, first, alt_end, _COMMA)
            allele += 1
            if last - first == 1 and (data[first] == _DOT or data[first] == 42):
                first = last + 1
                continue
            left, ref_right, alt_right = _trimmed(data, ref_first, ref_last, first, last)
            state = ref_state
            if not _letters(data, first, last):
                state = SYMBOLIC
            elif ref_right - left == 0 and alt_right - (first + left - ref_first) == 0:
                first = last + 1
                continue
            elif (
                ref_right - left > LONGEST_EDIT
                or alt_right - (first + left - ref_first) > LONGEST_EDIT
            ):
                state = TOO_LONG
            elif state == SEARCHED:
                for i in range(first + left - ref_first, alt_right):
                    if CODE_OF_BYTE[data[i]] > 3:
                        state = AMBIGUOUS
            found[count, 0] = row
            found[count, 1] = allele
            found[count, 2] = at + left - ref_first
            found[count, 3] = at + ref_right - ref_first
            found[count, 4] = first + left - ref_first
            found[count, 5] = alt_right
            found[count, 6] = state
            count += 1
            first = last + 1
    return count


@compiled
def _letters(data, first, last):
    for i in range(first, last):
        if CODE_OF_BYTE[data[i]] == 255:
            return False
    return last > first


@compiled
def _state_of_ref(data, first, last, at, begin, end, genome):
    """Compare REF with the genome."""
    if at < begin or at + last - first > end or last <= first:
        return BEYOND
    segment = interval_at(genome.segment_starts, at)
    state = SEARCHED
    if segment < 0 or at + last - first > genome.segment_stops[segment]:
        state = AMBIGUOUS
    for i in range(last - first):
        code = CODE_OF_BYTE[data[first + i]]
        position = at + i
        word = genome.packed[position >> 5]
        base = np.uint8(word >> np.uint64(62 - 2 * (position & 31)) & np.uint64(3))
        if code < 4 and code != base and state == SEARCHED:
            return WRONG_REF
        if code > 3 and state == SEARCHED:
            state = AMBIGUOUS
    return state


@compiled
def _trimmed(data, ref_first, ref_last, first, last):
    """Return where REF and ALT begin to differ, in REF, and the ends of both parts that differ."""
    shared = 0
    least = min(ref_last - ref_first, last - first)
    while shared < least and _upper(data[ref_first + shared]) == _upper(data[first + shared]):
        shared += 1
    ref_right, alt_right = ref_last, last
    while (
        ref_right > ref_first + shared
        and alt_right > first + shared
        and _upper(data[ref_right - 1]) == _upper(data[alt_right - 1])
    ):
        ref_right -= 1
        alt_right -= 1
    return ref_first + shared, ref_right, alt_right


@compiled
def _upper(letter):
    return letter & 223


@compiled
def read_genotypes(data, columns, found, everyone, n_samples, genotypes):
    """Write which haplotypes carry each allele, which exist, and which alleles are phased.

    Haplotypes 2 i and 2 i + 1 are those of sample i; the second does not exist if its genotype is
    one allele. A missing genotype, which is only a dot, counts as two alleles.

    Parameters
    ----------
    found : ndarray, shape=(n, 7), dtype=int64
        From `list_alleles`; those of a line are consecutive.
    everyone : ndarray, shape=(n_words,), dtype=uint64
        All haplotypes.
    genotypes : Genotypes

    Returns
    -------
    row, problem : int
        The first line with a problem.
    n_present : int
        Rows of `present`.
    """
    carriers, kinds, ploidies, present = genotypes
    pattern = load(_ALL_REFERENCE, 0)
    allele = 0
    n_present = 0
    while allele < len(found):
        row = found[allele, 0]
        after = allele + 1
        while after < len(found) and found[after, 0] == row:
            after += 1
        at, stop = columns[row, FIXED] + 1, columns[row, FIXED + 1]
        is_free, has_sets = _format_of(data, columns, row)
        there = present[n_present]
        there[:] = everyone
        sample = 0
        while at <= stop and sample < n_samples:
            # Most genotypes are those of the reference, a vector of them at a time.
            while (
                at + VECTOR_BYTES <= stop
                and sample + VECTOR_BYTES // 4 <= n_samples
                and np.uint64(mask_bits(equal(load(data, at), pattern))) == _ALL_EQUAL
            ):
                at += VECTOR_BYTES
                sample += VECTOR_BYTES // 4
            if at > stop or sample >= n_samples:
                break
            if is_free == 0 and not has_sets and _is_plain(data, at, stop):
                _set_allele(found, allele, after, data[at], 2 * sample, carriers)
                _set_allele(found, allele, after, data[at + 2], 2 * sample + 1, carriers)
                at += 4
                sample += 1
                continue
            if is_free != 2:
                unphased, at, problem = _read_genotype(
                    data, (at, stop), found, (allele, after), sample, carriers, there
                )
                if problem:
                    return row, problem, n_present
                if unphased == 1 or (unphased == 2 and has_sets):
                    is_free = 1
            at = find_byte(data, at, stop, _TAB) + 1
            sample += 1
        if sample != n_samples or at <= stop:
            return row, SAMPLE_COUNT, n_present
        changed = np.int64(n_present == 0)
        for word in range(0 if changed else everyone.size):
            changed += there[word] != present[n_present - 1, word]
        n_present += changed > 0
        for i in range(allele, after):
            ploidies[i] = n_present - 1
            is_carried = is_free == 1 and carriers[i].any()
            kinds[i] = NO_GENOTYPES if is_free == 2 else UNPHASED if is_carried else PHASED
        allele = after
    return -1, WELL, n_present


@inner(nogil=True, forceinline=True)
def _is_plain(data, at, stop):
    """Return whether a genotype is two phased digits, and nothing else follows."""
    return (
        at + 3 <= stop
        and data[at + 1] == _BAR
        and (at + 3 == stop or data[at + 3] == _TAB)
        and _ZERO <= data[at] <= _NINE
        and _ZERO <= data[at + 2] <= _NINE
    )


@inner(nogil=True, forceinline=True)
def _set_allele(found, first, last, digit, haplotype, carriers):
    """Note that a haplotype has the allele of a digit."""
    if digit == _ZERO:
        return
    for i in range(first, last):
        if found[i, 1] == digit - _ZERO:
            carriers[i, haplotype >> 6] |= np.uint64(1) << np.uint64(haplotype & 63)


@compiled
def _format_of(data, columns, row):
    """Return 2 if there are no genotypes, otherwise 0, and whether there are phase sets."""
    first, last = columns[row, FIXED - 1], columns[row, FIXED]
    has_genotypes = last - first >= 2 and data[first] == 71 and data[first + 1] == 84
    has_genotypes = has_genotypes and (last - first == 2 or data[first + 2] == _COLON)
    has_sets = False
    for i in range(first, last - 2):
        has_sets = has_sets or (
            data[i] == _COLON and data[i + 1] == 80 and data[i + 2] == 83
            and (i + 3 == last or data[i + 3] == _COLON)
        )  # fmt: skip
    return 0 if has_genotypes else 2, has_sets


@compiled
def _read_genotype(data, ends, found, alleles, sample, carriers, there):
    """Read one genotype; return 1 if it is unphased, 2 if phased and heterozygous; and its end."""
    at, stop = ends
    first, last = alleles
    number = 0
    before = _MISSING
    state = 0
    separator = _BAR
    # VCF 4.4 allows a phase before the first allele.
    if at < stop and data[at] in (_SLASH, _BAR):
        at += 1
    while True:
        allele = _MISSING
        if at < stop and data[at] == _DOT:
            at += 1
        else:
            allele = 0
            begin = at
            while at < stop and _ZERO <= data[at] <= _NINE and at - begin < 9:
                allele = allele * 10 + data[at] - _ZERO
                at += 1
            if at == begin:
                return 0, at, BAD_GENOTYPE
        if number == 2:
            return 0, at, PLOIDY
        if allele > 0:
            haplotype = 2 * sample + number
            for i in range(first, last):
                if found[i, 1] == allele:
                    bit = np.uint64(1) << np.uint64(haplotype & 63)
                    carriers[i, haplotype >> 6] |= bit
        # A missing allele counts as that of the reference.
        if number == 1 and max(allele, 0) != max(before, 0):
            state = 1 if separator == _SLASH else 2
        before = allele
        number += 1
        if at >= stop or data[at] == _TAB or data[at] == _COLON:
            if number == 1 and allele != _MISSING:
                second = 2 * sample + 1
                there[second >> 6] &= ~(np.uint64(1) << np.uint64(second & 63))
            return state, at, WELL
        separator = data[at]
        if separator not in (_SLASH, _BAR):
            return 0, at, BAD_GENOTYPE
        at += 1
