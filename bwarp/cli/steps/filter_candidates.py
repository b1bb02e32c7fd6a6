"""Drop candidates whose base or k-mer counts prove that no wanted alignment exists.

Lossless: a candidate is dropped only where the counts of the read and of its window prove that no
alignment of the whole read with at most the allowed edits exists (bwarp/filtering/
histogram_bound.py has the proofs). Reads READS.npz: `packed`, the 2-bit bases end to end, and
`starts`. Candidates C.npz: `reads`, `strands` (1 for reverse), `starts`, `stops` (windows of the
genome, slack included) and `max_edits`. OUT.npz has the rows that were kept, and `edits`, what any
alignment has at least; OUT.stats.json says how many there were, were dropped and kept.
"""

import json
import zipfile
from pathlib import Path

import numpy as np

from bwarp.cli.options import add_index_option, add_output_option
from bwarp.cli.program import bounded_int, choose_engine, program_parser, say
from bwarp.errors import InputError, UsageError
from bwarp.filtering.candidates import Candidates, check_kmer_length
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file
from bwarp.io.output_names import check_outputs

EXAMPLES = """
scripts/filter_candidates.py --index genome.index --reads reads.npz --candidates c.npz -o kept.npz
scripts/filter_candidates.py --index genome.index --reads reads.npz --candidates c.npz \\
    -o kept.npz --kmer-length 0      bases alone: quicker, and drops less
"""

CANDIDATE_TYPES = {
    "reads": np.int64,
    "strands": np.uint8,
    "starts": np.int64,
    "stops": np.int64,
    "max_edits": np.int32,
}
READ_TYPES = {"packed": np.uint64, "starts": np.int64}
LONGEST_WINDOW = 65_535


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    parser.add_argument("--reads", required=True, metavar="READS.npz", help="packed reads")
    parser.add_argument("--candidates", required=True, metavar="C.npz", help="candidates")
    add_output_option(parser, "OUT.npz", "candidates that are kept")
    parser.add_argument(
        "--kmer-length", type=bounded_int(0, 5), default=4, metavar="Q",
        help="length of the k-mers that are counted after the bases; 0 for bases alone",
    )  # fmt: skip
    return parser


def main(options):
    if not options.output.endswith(".npz"):
        raise UsageError(f"{options.output}: the ending must be .npz")
    statistics_file = Path(options.output).with_suffix(".stats.json")
    inputs = [options.index, options.reads, options.candidates]
    check_outputs([options.output, statistics_file], inputs)
    check_kmer_length(options.kmer_length)
    backend = choose_engine(options.backend)
    if backend == "cuda":
        from bwarp.filtering.filter_cuda import filter_candidates
    else:
        from bwarp.filtering.filter_cpu import filter_candidates
    reference = load_index(options.index).reference
    reads = read_arrays(options.reads, READ_TYPES)
    check_reads(options.reads, reads)
    arrays = read_arrays(options.candidates, CANDIDATE_TYPES)
    check_candidates(options.candidates, arrays, reads["starts"].size - 1, reference)
    found = filter_candidates(
        reads["packed"],
        reads["starts"],
        np.ascontiguousarray(reference.packed),
        Candidates(**arrays),
        options.kmer_length,
        options.threads,
    )
    kept = {name: array[found.kept] for name, array in arrays.items()}
    with atomic_file(options.output) as file:
        np.savez(file, **kept, edits=found.edits[found.kept])
    statistics = {
        "candidates": found.seen,
        "dropped_by_bases": found.dropped_by_bases,
        "dropped_by_kmers": found.dropped_by_kmers,
        "kept": int(found.kept.sum()),
    }
    with atomic_file(statistics_file, "w") as file:
        file.write(json.dumps(statistics, indent=1) + "\n")
    say(
        f"{found.seen:,} candidates: {found.dropped_by_bases:,} dropped by bases, "
        f"{found.dropped_by_kmers:,} by k-mers, {statistics['kept']:,} kept"
    )


def read_arrays(path, types) -> dict:
    """The arrays of an .npz file that `types` names, each with its type."""
    try:
        with np.load(path) as file:
            missing = [name for name in types if name not in file]
            if missing:
                raise InputError(f"{path}: has no array {missing[0]!r}: write it again")
            arrays = {name: file[name] for name in types}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path}: is no .npz file, or a damaged one: write it again") from error
    for name, dtype in types.items():
        if arrays[name].ndim != 1 or arrays[name].dtype != dtype:
            raise InputError(
                f"{path}: {name!r} must be 1-d {np.dtype(dtype)}, not {arrays[name].ndim}-d "
                f"{arrays[name].dtype}: write it again"
            )
    return arrays


def check_reads(path, reads):
    """Refuse reads that end after the packed bases do, or before they begin."""
    starts = reads["starts"]
    if not starts.size or starts[0] < 0 or (np.diff(starts) < 0).any():
        raise InputError(f"{path}: 'starts' must ascend from 0 on: write it again")
    if starts[-1] > 32 * (reads["packed"].size - 1):
        raise InputError(f"{path}: 'packed' ends before the last read does: write it again")


def check_candidates(path, arrays, n_reads, reference):
    """Refuse rows that point outside of the reads or the genome: nothing checks them later."""
    if len({array.size for array in arrays.values()}) != 1:
        raise InputError(f"{path}: the arrays differ in length: write it again")
    genome = int(reference.contig_starts[-1])
    wrong = (
        (arrays["reads"] < 0)
        | (arrays["reads"] >= n_reads)
        | (arrays["starts"] < 0)
        | (arrays["starts"] > arrays["stops"])
        | (arrays["stops"] > genome)
        | (arrays["stops"] - arrays["starts"] > LONGEST_WINDOW)
        | (arrays["max_edits"] < 0)
    )
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{path}: candidate {row} (read {arrays['reads'][row]}, window "
            f"{arrays['starts'][row]} to {arrays['stops'][row]}) does not lie within the "
            f"{n_reads} reads and the {genome:,} bases of the genome, or is longer than "
            f"{LONGEST_WINDOW:,}"
        )
