"""Time the search for off-targets against Sassy, and verify it by trying every site.

    python benchmarks/offtargets.py --check
    python benchmarks/offtargets.py --reference chr20.fa --guides guides.fa --threads 2
    python benchmarks/offtargets.py --reference chr20.fa --variants 64_000_000

61 guides are taken next to PAMs in the reference (or from --guides). Parts, for several limits:
    search   the search alone, from the packed genome to all sites in memory; in turn with Sassy if
             its module (PyPI sassy-rs) can be imported: it allows as many edits as bwarp allows
             mismatches, with the PAM as part of its pattern
    whole    the program from an index to a table on disk
    variants with --variants: the program with phased variants simulated on the first bases of the
             reference, one in 35 bases, of 5,000 haplotypes with frequencies as in a population of
             constant size: nine in ten substitutions, the others insertions and deletions
    check    with --check: the first 5 Mb by plain dynamic programming at every site

One JSON object per line is appended to --output.
"""

import importlib
import statistics
import tempfile
import time
from pathlib import Path

import numba
import numpy as np
import pysam
from frame.options import add_threads, large_file, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.simulated import script
from frame.timing import in_turn, run_program

from bwarp.offtargets.find import find_sites
from bwarp.offtargets.guides import guides_of, parse_pam, read_guides
from bwarp.offtargets.hits import SiteOptions, joined_hits
from bwarp.reference import codes_of, make_reference, read_reference
from bwarp.sequence import decode, reverse_complement

N_GUIDES, LENGTH = 61, 20
LIMITS = ((3, 0, 0), (4, 0, 0), (3, 1, 1), (4, 1, 1))


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", help="FASTA (default: chr20.fa of $BWARP_LARGE, or random)")
    parser.add_argument("--guides", help="as find_offtargets.py takes them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--checked", type=int, default=5_000_000, help="bases of --check")
    parser.add_argument("--variants", type=int, default=0, help="bases with variants (0: none)")
    parser.add_argument("--samples", type=int, default=2_500, help="samples of the variants")
    add_threads(parser)
    options = read_options(
        parser,
        "offtargets.jsonl",
        rounds=1,
        reference="random",
        check=True,
        checked=40_000,
        variants=50_000,
        samples=20,
    )
    results = Results(options.output, benchmark="offtargets")
    reference, named = the_reference(options)
    guides = read_guides(options.guides) if options.guides else guides_with_pam(reference)
    pam = parse_pam("NGG")
    if options.check:
        check(results, reference, guides, pam, options)
    sassy = sassy_search(reference, guides, options.threads)
    for limits in LIMITS:
        search(results, reference, named, guides, pam, SiteOptions(*limits), sassy, options)
    whole(results, options, reference, named, guides)
    if options.variants:
        variants(results, options, reference, named, guides)


def the_reference(options):
    path = options.reference or large_file("chr20.fa")
    if path is None or path == "random":
        codes = np.random.default_rng(1).integers(0, 4, 300_000).astype(np.uint8)
        return make_reference(("random",), np.array([0, codes.size]), codes), "random"
    return read_reference(path, options.threads), Path(path).name


def guides_with_pam(reference):
    """Return protospacers of the genome that are far from each other."""
    codes = codes_of(reference)
    rng = np.random.default_rng(7)
    found = {}
    while len(found) < N_GUIDES:
        at = int(rng.integers(0, codes.size - LENGTH - 3))
        piece = decode(codes[at : at + LENGTH + 3])
        if piece.endswith(b"GG") and b"N" not in piece:
            found[piece[:LENGTH].decode()] = at
    return guides_of([f"guide{i}" for i in range(N_GUIDES)], list(found))


def sites_of(reference, guides, pam, options, threads):
    return joined_hits([hits for _, hits in find_sites(reference, guides, pam, options, threads)])


# --- Against Sassy -------------------------------------------------------------------------------


def sassy_search(reference, guides, threads):
    """Return a function from edits to Sassy's number of matches, or None without Sassy."""
    if not found("sassy"):
        return None
    module = importlib.import_module("sassy")
    text = decode(codes_of(reference))
    patterns = [sequence.encode() + b"NGG" for sequence in guides.sequences]
    searcher = module.Searcher("iupac", rc=True)
    return lambda edits: len(
        searcher.search_many(patterns, [text], edits, threads, "batch_patterns")
    )


def search(results, reference, named, guides, pam, limits, sassy, options):
    def seconds_of(function):
        start = time.perf_counter()
        count = function()
        return time.perf_counter() - start, count

    jobs = {
        "bwarp": lambda: seconds_of(
            lambda: sites_of(reference, guides, pam, limits, options.threads).count
        )
    }
    if sassy is not None:
        jobs["sassy"] = lambda: seconds_of(lambda: sassy(limits.mismatches))
    jobs["bwarp"]()  # compiles
    for program, runs in in_turn(jobs, options.rounds).items():
        add(
            results, "search", [seconds for seconds, _ in runs], program=program, reference=named,
            bases=reference.n_bases, guides=guides.count, mismatches=limits.mismatches,
            dna_bulge=limits.dna_bulge if program == "bwarp" else None,
            rna_bulge=limits.rna_bulge if program == "bwarp" else None,
            threads=options.threads, found=runs[0][1],
        )  # fmt: skip


def add(results, part, seconds, **values):
    results.add(
        part=part,
        **values,
        seconds=round(statistics.median(seconds), 4),
        all_seconds=[round(second, 4) for second in seconds],
    )


# --- The program ---------------------------------------------------------------------------------


def write_inputs(folder, reference, guides, n_bases=None):
    """Write an index of the reference, or of its first bases, and the guides; return both paths."""
    genome, listed, index = folder / "genome.fa", folder / "guides.fa", folder / "index"
    codes = codes_of(reference)
    starts = reference.contig_starts
    with genome.open("wb") as file:
        for name, start, stop in zip(reference.names, starts, starts[1:], strict=False):
            last = stop if n_bases is None else min(stop, n_bases)
            if start < last:
                file.write(b">%s\n%s\n" % (name.encode(), decode(codes[start:last])))
    listed.write_text(
        "".join(f">{a}\n{b}\n" for a, b in zip(guides.names, guides.sequences, strict=True))
    )
    run_program([*script("index_reference"), genome, "-o", index, "--backend", "cpu"])
    return index, listed


def whole(results, options, reference, named, guides):
    with tempfile.TemporaryDirectory() as folder:
        index, listed = write_inputs(Path(folder), reference, guides)
        for m, dna, rna in LIMITS:
            command = [
                *script("find_offtargets"), "--index", index, "--guides", listed,
                "-o", Path(folder, "sites.tsv"), "--mismatches", m, "--dna-bulges", dna,
                "--rna-bulges", rna, "--threads", options.threads,
            ]  # fmt: skip
            run_program(command)
            used = [run_program(command) for _ in range(options.rounds)]
            add(
                results, "whole", [one.wall for one in used], program="bwarp", reference=named,
                guides=guides.count, mismatches=m, dna_bulge=dna, rna_bulge=rna,
                threads=options.threads, peak_mb=max(one.peak for one in used) >> 20,
            )  # fmt: skip


def variants(results, options, reference, named, guides):
    """Time the program with simulated variants, and without, on the first bases."""
    m, dna, rna = LIMITS[-1]
    with tempfile.TemporaryDirectory() as folder:
        index, listed = write_inputs(Path(folder), reference, guides, options.variants)
        path = Path(folder, "variants.vcf.gz")
        n_variants = write_variants(path, reference, options.variants, options.samples)
        command = [
            *script("find_offtargets"), "--index", index, "--guides", listed,
            "-o", Path(folder, "sites.tsv"), "--mismatches", m, "--dna-bulges", dna,
            "--rna-bulges", rna, "--threads", options.threads,
        ]  # fmt: skip
        jobs = {
            False: lambda: run_program(command),
            True: lambda: run_program([*command, "--variants", path]),
        }
        for job in jobs.values():
            job()  # compiles
        for with_variants, used in in_turn(jobs, options.rounds).items():
            add(
                results, "variants", [one.wall for one in used], program="bwarp", reference=named,
                bases=min(options.variants, reference.n_bases), guides=guides.count, mismatches=m,
                dna_bulge=dna, rna_bulge=rna, threads=options.threads,
                variants=n_variants if with_variants else 0, haplotypes=2 * options.samples,
                peak_mb=max(one.peak for one in used) >> 20,
            )  # fmt: skip


def write_variants(path, reference, n_bases, n_samples):
    """Write phased variants of the first contig; return their number."""
    rng = np.random.default_rng(11)
    n_haplotypes = 2 * n_samples
    codes = codes_of(reference)[: min(n_bases, int(reference.contig_starts[1]))]
    letters = np.frombuffer(b"ACGTN", np.uint8)[codes].tobytes().decode()
    counts = np.arange(1, n_haplotypes)
    shares = 1 / counts / (1 / counts).sum()
    starts = np.sort(rng.choice(codes.size - 10, codes.size // 35, replace=False))
    plain = np.frombuffer(b"0|0\t" * n_samples, np.uint8)
    n_variants = 0
    with pysam.BGZFile(str(path), "wb") as file:
        samples = "\t".join(f"s{i}" for i in range(n_samples))
        file.write(
            b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t"
            + f"{samples}\n".encode()
        )
        for start in starts.tolist():
            kind, size = rng.random(), int(rng.integers(1, 6))
            ref = letters[start : start + (1 + size if kind > 0.95 else 1)]
            if "N" in ref:
                continue
            alt = ref[0]
            if 0.9 < kind <= 0.95:
                alt += "".join(rng.choice(list("ACGT"), size))
            elif kind <= 0.9:
                alt = "ACGT"[(int(codes[start]) + int(rng.integers(1, 4))) % 4]
            count = int(rng.choice(counts, p=shares))
            carriers = rng.choice(n_haplotypes, count, replace=False, shuffle=False)
            line = plain.copy()
            line[carriers // 2 * 4 + carriers % 2 * 2] = ord("1")
            line[-1] = ord("\n")
            head = f"{reference.names[0]}\t{start + 1}\t.\t{ref}\t{alt}\t.\tPASS\t."
            file.write(f"{head}\tGT\t".encode() + line.tobytes())
            n_variants += 1
    return n_variants


# --- The proof -----------------------------------------------------------------------------------


def check(results, reference, guides, pam, options):
    """Check every site in the first bases, by the minimum mismatches for each number of gaps."""
    codes = codes_of(reference)
    firsts = np.flatnonzero(codes != 4)
    codes = codes[firsts[0] : firsts[0] + options.checked]
    small = make_reference(("checked",), np.array([0, codes.size]), codes)
    for m, dna, rna in LIMITS:
        hits = sites_of(small, guides, pam, SiteOptions(m, dna, rna), options.threads)
        assert set(np.unique(hits.ranks)) <= {0}
        found = sorted(
            zip(
                *(column.tolist() for column in (
                    hits.guides, hits.strands,
                    np.where(hits.strands == 0, hits.starts + hits.lengths, hits.starts),
                    hits.mismatches + hits.dna_bulges + hits.rna_bulges,
                    hits.dna_bulges + hits.rna_bulges,
                )), strict=True,
            )
        )  # fmt: skip
        expected = []
        for strand, text in enumerate((codes, reverse_complement(codes))):
            text = np.ascontiguousarray(text)
            for number, sequence in enumerate(guides.sequences):
                guide = np.frombuffer(sequence.encode(), np.uint8)[::-1]
                guide = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), guide)
                for at, edits, bulges in _tried(text, guide, m, dna, rna):
                    border = at if strand == 0 else codes.size - at
                    expected.append((number, strand, int(border), int(edits), int(bulges)))
        assert found == sorted(expected), f"{m}, {dna}, {rna}: the sites are not the same"
        results.add(
            part="check", bases=int(codes.size), guides=guides.count, mismatches=m, dna_bulge=dna,
            rna_bulge=rna, sites=len(found), equal=True,
        )  # fmt: skip


@numba.njit
def _tried(text, guide, mismatches, dna, rna):
    """Return PAM position, edits and bases in bulges for every NGG where the guide fits."""
    found = []
    n = guide.size
    fewest = np.empty((n + 1, dna + 1, rna + 1), np.int64)
    for at in range(text.size - 2):
        if text[at] == 4 or text[at + 1] != 2 or text[at + 2] != 2:
            continue
        fewest[:] = 1000
        for i in range(1, n + 1):
            for d in range(dna + 1):
                for r in range(rna + 1):
                    # The last base of i bases of the guide is paired with one of the site.
                    base = at - (i + d - r)
                    if i + d - r < 1 or base < 0 or text[base] == 4:
                        continue
                    before = 1000
                    if i == 1 and d == 0 and r == 0:
                        before = 0
                    for gap_d in range(d + 1):
                        for gap_r in range(r + 1):
                            last = i - 1 - gap_r
                            if last < 1:
                                continue
                            crossed = False
                            for k in range(base + 1, base + 1 + gap_d):
                                crossed = crossed or text[k] == 4
                            if not crossed:
                                before = min(before, fewest[last, d - gap_d, r - gap_r])
                    fewest[i, d, r] = before + (text[base] != guide[i - 1])
        best_edits = best_bulges = 1000
        for d in range(dna + 1):
            for r in range(rna + 1):
                here = fewest[n, d, r]
                edits, bulges = here + d + r, d + r
                if here <= mismatches and (
                    edits < best_edits or (edits == best_edits and bulges < best_bulges)
                ):
                    best_edits, best_bulges = edits, bulges
        if best_edits < 1000:
            found.append((at, best_edits, best_bulges))
    return found


if __name__ == "__main__":
    main()
