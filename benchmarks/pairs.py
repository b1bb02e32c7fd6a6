"""Time pairs against parasail and edlib, and Ren et al.'s workloads, and verify the results.

    python benchmarks/pairs.py --parts dna edits ren --output benchmarks/results/pairs.jsonl
    python benchmarks/pairs.py --parts check
    python benchmarks/pairs.py --parts dna ren --backend cuda
    python benchmarks/pairs.py --parts program --backend cuda --threads 16

Parts:
    dna      150 bases against 200, affine gaps: score and CIGAR in every mode, and parasail's
             fastest function for the same pairs in the same run. The cost of calling it from
             Python, measured with pairs of one base, is subtracted from its time
    edits    the same pairs by edit distance (match 0, mismatch -1, gaps n), global and with the
             query within the reference, and edlib's distances, which must be equal; its time is
             corrected in the same way
    ren      GATK's mode with the sizes of Ren et al. (BMC Genomics 20:184, 2019): equal lengths of
             64 to 576 in batches of 25, 100 and 1000 (Figures 8, 9 and 12), and Table 3: situation
             2, reads of 40 to 120 against haplotypes of 40 to 350 in batches of 25 to 125;
             situation 3, haplotypes of 300 to 520 against references in batches of 1 to 8
    program  bwarp pairs as a whole, on files of --program-pairs pairs with the sizes of GASAL2's
             own set: 150 bases against 152 to 277. From two FASTA files to TSV in two modes, from
             FASTQ and FASTA to SAM, and from a table to TSV; the first round is not counted
    check    parasail's scores for 100,000 pairs in every mode, and an independent translation of
             GATK's aligner for a million pairs

One JSON object per line is appended to --output. GCUPS are 10^9 cells (query length times reference
length) per second.
"""

import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from frame.options import CHECKOUT, add_folder, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.timing import in_turn, median_seconds, run_program
from parts.alignment_pairs import BASES, mutated_reads, write_pairs

from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, OVERHANGS
from bwarp.alignment.pairs import PairBatch, Sequences, cigar_text, sequences_of
from bwarp.alignment.scoring import FITTING, GLOBAL, LOCAL, SEMIGLOBAL, nucleotide_scoring

MODES = {"local": LOCAL, "semiglobal": SEMIGLOBAL, "fitting": FITTING, "global": GLOBAL}
#: edlib's names of modes.
EDLIB = {"global": "NW", "fitting": "HW"}
PEERS = {"local": "sw", "semiglobal": "sg", "fitting": "sg_dx", "global": "nw"}

#: Ren et al., Table 3: GCUPS of stage 1 on the GPU, total seconds on the GPU and on the CPU.
REN_TABLE_3 = {"situation 2": (1.86, 3.15, 44.55), "situation 3": (0.64, 10.93, 53.46)}


def engine(backend):
    """Return pair_scores, pair_alignments and gatk_alignments of an engine."""
    if backend == "cuda":
        from bwarp.alignment import gatk_cuda as gatk
        from bwarp.alignment import pair_ends_cuda as pairs
    else:
        from bwarp.alignment import gatk_cpu as gatk
        from bwarp.alignment import pair_ends_cpu as pairs
    return pairs.pair_scores, pairs.pair_alignments, gatk.gatk_alignments


def cells_of(pairs):
    return int(np.sum(pairs.queries.lengths.astype(np.int64) * pairs.references.lengths))


def dna(options, results):
    pair_scores, pair_alignments, _ = engine(options.backend)
    rng = np.random.default_rng(101)
    scoring = nucleotide_scoring(1, -4, 6, 1)
    queries, references = mutated_reads(rng, options.pairs, 150, 200, 0.03)
    pairs = PairBatch(sequences_of(list(queries)), sequences_of(list(references)))
    cells = cells_of(pairs)
    for name, mode in MODES.items():
        score, whole = (
            median_seconds(lambda f=f, mode=mode: f(pairs, scoring, mode, options.threads), 5)
            for f in (pair_scores, pair_alignments)
        )
        ours, beside = cells / score / 1e9, {}
        if found("parasail"):
            peer = parasail_seconds(name, queries, references, 7, 1, 1, -4)
            best = min(peer, key=peer.get)
            beside = {
                "parasail": best,
                "parasail_gcups": round(30_000 / peer[best] / 1e9, 2),
                "times_parasail": round(ours * peer[best] * 1e9 / 30_000, 1),
            }
        results.add(
            part="dna", mode=name, pairs=options.pairs, lengths="150x200",
            score_gcups=round(ours, 2), cigar_gcups=round(cells / whole / 1e9, 2), **beside,
        )  # fmt: skip


def edits(options, results):
    pair_scores, _, _ = engine(options.backend)
    scoring = nucleotide_scoring(0, -1, 0, 1)
    queries, references = mutated_reads(np.random.default_rng(105), options.pairs, 150, 200, 0.03)
    pairs = PairBatch(sequences_of(list(queries)), sequences_of(list(references)))
    cells = cells_of(pairs)
    for name, task in EDLIB.items():

        def scores(mode=MODES[name]):
            return pair_scores(pairs, scoring, mode, options.threads)

        ours, beside = cells / median_seconds(scores, 5) / 1e9, {}
        if found("edlib"):
            distances, seconds = edlib_distances(task, queries, references)
            if (scores()[: distances.size] != -distances).any():
                sys.exit(f"{name}: the distances are not those of edlib")
            theirs = 30_000 * distances.size / seconds / 1e9
            beside = {"edlib_gcups": round(theirs, 2), "times_edlib": round(ours / theirs, 1)}
        results.add(
            part="edits", mode=name, pairs=options.pairs, lengths="150x200",
            score_gcups=round(ours, 2), **beside,
        )  # fmt: skip


def edlib_distances(task, queries, references, count=2000):
    """Return edlib's edit distances of the first pairs, and its net seconds for all."""
    import edlib

    texts = [
        (q.tobytes(), r.tobytes())
        for q, r in zip(BASES[queries[:count]], BASES[references[:count]], strict=True)
    ]

    def run(work):
        return [edlib.align(q, r, mode=task)["editDistance"] for q, r in work]

    calls = [(b"A", b"A")] * len(texts)
    seconds = median_seconds(lambda: run(texts), 3) - median_seconds(lambda: run(calls), 3)
    return np.array(run(texts)), seconds


def parasail_seconds(mode, queries, references, first, more, match, mismatch, count=2000):
    """Return the net seconds per pair of each of parasail's functions, on the first pairs."""
    import parasail

    matrix = parasail.matrix_create("ACGT", match, mismatch)
    texts = [
        (q.tobytes().decode(), r.tobytes().decode())
        for q, r in zip(BASES[queries[:count]], BASES[references[:count]], strict=True)
    ]
    seconds = {}
    for kind in ("striped", "scan", "diag"):
        for width in ("8", "16", "sat"):
            function = getattr(parasail, f"{PEERS[mode]}_{kind}_{width}")
            if width == "8" and function(*texts[0], first, more, matrix).saturated:
                continue

            def run(work, function=function):
                return [function(q, r, first, more, matrix) for q, r in work]

            calls = [("A", "A")] * len(texts)
            whole = median_seconds(lambda run=run: run(texts), 3)
            empty = median_seconds(lambda run=run, calls=calls: run(calls), 3)
            seconds[f"{kind}_{width}"] = (whole - empty) / len(texts)
    return seconds


def haplotype_pairs(rng, count, alternate_lengths, reference_lengths):
    """Return alternates (text) cut from their references, with a few differences."""
    alternates, references = [], []
    for _ in range(count):
        reference = BASES[rng.integers(0, 4, rng.integers(*reference_lengths, endpoint=True))]
        length = min(int(rng.integers(*alternate_lengths, endpoint=True)), reference.size)
        begin = int(rng.integers(0, reference.size - length + 1))
        alternate = reference[begin : begin + length].copy()
        alternate[rng.random(length) < 0.01] = BASES[rng.integers(4)]
        if rng.random() < 0.2:
            alternate = np.delete(alternate, slice(length // 2, length // 2 + 3))
        alternates.append(alternate)
        references.append(reference)
    return PairBatch(sequences_of(alternates), sequences_of(references))


def ren(options, results):
    _, _, gatk_alignments = engine(options.backend)
    parameters = GATK_PARAMETERS["new-sw-parameters"]
    rng = np.random.default_rng(102)

    def run(batches):
        for batch in batches:
            gatk_alignments(batch, parameters, "softclip", options.threads)

    for length in range(64, 577, 64):
        for count in (25, 100, 1000):
            batch = haplotype_pairs(rng, count, (length, length), (length, length))
            seconds = median_seconds(lambda batch=batch: run([batch]), 5)
            results.add(
                part="ren", workload="synthetic", length=length, pairs=count,
                milliseconds=round(1e3 * seconds, 3),
                gcups=round(cells_of(batch) / seconds / 1e9, 2),
            )  # fmt: skip
    shapes = {
        "situation 2": ((40, 120), (40, 350), (25, 125), 60),
        "situation 3": ((300, 520), (300, 520), (1, 8), 150),
    }
    for name, (alternate, reference, batch_sizes, n_batches) in shapes.items():
        batches = [
            haplotype_pairs(rng, rng.integers(*batch_sizes, endpoint=True), alternate, reference)
            for _ in range(n_batches)
        ]
        together = join(batches)
        cells = cells_of(together)
        published, gpu_seconds, cpu_seconds = REN_TABLE_3[name]
        for label, work in (("batches", batches), ("together", [together])):
            seconds = median_seconds(lambda work=work: run(work), 3)
            results.add(
                part="ren", workload=name, handed=label, pairs=together.count,
                gcups=round(cells / seconds / 1e9, 2), published_gpu_stage_1_gcups=published,
                published_gpu_seconds=gpu_seconds, published_cpu_seconds=cpu_seconds,
            )  # fmt: skip


def join(batches):
    sides = []
    for side in ("queries", "references"):
        parts = [getattr(batch, side) for batch in batches]
        base = np.cumsum([0, *(part.codes.size for part in parts[:-1])])
        sides.append(
            Sequences(
                np.concatenate([part.codes for part in parts]),
                np.concatenate([p.starts + b for p, b in zip(parts, base, strict=True)]),
                np.concatenate([part.lengths for part in parts]),
            )
        )
    return PairBatch(*sides)


#: The runs of the part program: input, output and mode.
RUNS = (
    ("fasta", "tsv", "semiglobal"),
    ("fasta", "tsv", "local"),
    ("fastq", "sam", "local"),
    ("table", "tsv", "semiglobal"),
)


def program(options, results):
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        write_pairs(Path(folder), options.program_pairs)
        sources = {
            "fasta": ("--queries", "q.fa", "--references", "r.fa"),
            "fastq": ("--queries", "q.fq", "--references", "r.fa"),
            "table": ("--pairs", "pairs.tsv"),
        }

        def run(source, output, mode):
            command = [sys.executable, "-m", "bwarp", "pairs", *sources[source], "--mode", mode]
            command += ["--backend", options.backend, "--threads", options.threads]
            return run_program([*command, "-o", f"out.{output}"], cwd=folder)

        used = in_turn({one: lambda one=one: run(*one) for one in RUNS}, 1 + options.rounds)
        for (source, output, mode), (_, *later) in used.items():
            results.add(
                part="program", source=source, format=output, mode=mode,
                pairs=options.program_pairs,
                seconds=[one.wall for one in later],
                processor_seconds=round(float(np.median([one.processor for one in later])), 3),
                memory_mb=max(one.peak for one in later) >> 20,
            )  # fmt: skip


def check(options, results):
    check_parasail(options, results)
    sys.path.insert(0, str(CHECKOUT))
    per_job = 5000
    jobs = [
        (options.backend, options.seed + number, per_job, name, overhang)
        for number, (name, overhang) in enumerate(
            [(n, o) for n in GATK_PARAMETERS for o in OVERHANGS]
            * -(-options.gatk_pairs // (per_job * len(GATK_PARAMETERS) * len(OVERHANGS)))
        )
    ]
    with ProcessPoolExecutor(options.threads) as pool:
        different = sum(pool.map(check_gatk, jobs))
    results.add(part="check", against="translation of GATK's aligner", pairs=per_job * len(jobs),
               different=different)  # fmt: skip
    if different:
        sys.exit("answers differ")


def check_parasail(options, results):
    import parasail

    pair_scores, _, _ = engine(options.backend)
    rng = np.random.default_rng(103)
    matrix = parasail.matrix_create("ACGT", 1, -4)
    queries, references = mutated_reads(rng, 100_000, 100, 150, 0.05)
    queries[::3] = rng.integers(0, 4, queries[::3].shape)
    pairs = PairBatch(sequences_of(list(queries)), sequences_of(list(references)))
    for name, mode in MODES.items():
        function = getattr(parasail, f"{PEERS[name]}_striped_16")
        expected = [
            function(q.tobytes().decode(), r.tobytes().decode(), 7, 1, matrix).score
            for q, r in zip(BASES[queries], BASES[references], strict=True)
        ]
        got = pair_scores(pairs, nucleotide_scoring(1, -4, 6, 1), mode, options.threads)
        different = int(np.sum(got != expected))
        results.add(
            part="check", against="parasail", mode=name, pairs=pairs.count, different=different
        )
        if different:
            sys.exit("scores differ")


def check_gatk(job):
    """Count the random pairs whose result differs from that of the translation."""
    backend, seed, count, name, overhang = job
    from tests.alignment.test_gatk_cpu import as_batch, random_haplotypes
    from tests.helpers.oracles.gatk_oracle import gatk_align

    pairs = random_haplotypes(np.random.default_rng([104, seed]), count)
    parameters = GATK_PARAMETERS[name]
    got = engine(backend)[2](as_batch(pairs), parameters, overhang)
    different = 0
    for i, (reference, alternate) in enumerate(pairs):
        score, offset, cigar = gatk_align(reference, alternate, parameters, overhang)
        runs = cigar_text(got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]])
        expected = (score, offset, "".join(f"{length}{letter}" for length, letter in cigar))
        different += (int(got.scores[i]), int(got.offsets[i]), runs) != expected
    return different


PARTS = {"dna": dna, "edits": edits, "ren": ren, "program": program, "check": check}


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["dna", "edits", "ren"])
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=50_000, help="pairs of the part dna")
    parser.add_argument("--program-pairs", type=int, default=500_000, help="for the part program")
    parser.add_argument("--rounds", type=int, default=5, help="number of timed runs of the program")
    add_folder(parser)
    parser.add_argument("--gatk-pairs", type=int, default=1_000_000, help="pairs to check")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs to check")
    options = read_options(
        parser, "pairs_cpu.jsonl", pairs=200, gatk_pairs=1000, program_pairs=500, rounds=1,
        parts=["dna", "edits", "program"],
    )  # fmt: skip
    results = Results(
        options.output,
        benchmark="pairs",
        backend=options.backend,
        threads=options.threads,
    )
    for part in options.parts:
        PARTS[part](options, results)


if __name__ == "__main__":
    main()
