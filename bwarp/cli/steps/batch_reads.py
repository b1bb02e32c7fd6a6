"""Split reads into batches, one file each, that can be processed in parallel on many machines.

The first of six steps that together do the work of bwarp allmap; bwarp map
also maps batches, with --batches and --part. The output is a folder of chunk files 0.reads, 1.reads
and so on.
"""

from itertools import chain, count, islice

from bwarp.cli.options import read_files
from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.io.atomic_output import atomic_folder, check_outputs
from bwarp.io.chunk_files import write_chunk_file
from bwarp.options.common import READ_FILES, output
from bwarp.options.mapping import ALLMAP
from bwarp.reads.read_files import chunks_of_files
from bwarp.reads.record_files import holds_records, read_groups
from bwarp.reads.stored_reads import batches_in, packed_reads
from bwarp.runtime.backend import may_have_gpu
from bwarp.runtime.chunks import in_order
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp batch-reads -1 R1.fq.gz -2 R2.fq.gz -o batches --batch-size 1000000
"""

#: Reads per batch by engine: starts and files take less than a quarter of the time of the steps.
_AUTO = {"cpu": 1_000_000, "cuda": 5_000_000}

#: Reads per chunk; the next steps hold the hits of a chunk in memory.
_READS_A_CHUNK = 1 << 15


def parse_options():
    return program_parser(
        __doc__,
        EXAMPLES,
        READ_FILES[0]._replace(required=True),
        *READ_FILES[1:],
        output("FOLDER", "folder of batches to make"),
        ALLMAP["batch_size"],
    )


def main(options):
    files = read_files(options)
    check_outputs([], files.names, options.output)
    size = options.batch_size or batch_size_of(options.backend)
    # The number of chunks, each with an even number of reads, nearest to the size.
    n_chunks = -(-size // _READS_A_CHUNK)
    reads_a_chunk = max(2, -(-size // (2 * n_chunks)) * 2)
    chunks = chunks_of_files(files, reads_a_chunk, options.threads)
    chunks = in_order(lambda chunk: (packed_reads(chunk), chunk.n_reads), chunks, options.threads)
    records = list(filter(holds_records, files.first))
    groups = list(dict.fromkeys(line for path in records for line in read_groups(path)))
    held = {"has_tags": bool(records), "read_groups": groups}
    n_reads = 0
    with (
        atomic_folder(options.output, own_files(options.output)) as folder,
        progress("read", files=files.names) as report,
    ):
        for number in count():
            first = next(chunks, None)
            # Without reads, write one empty batch.
            if first is None and number:
                break
            path = folder / f"{number}.reads"
            with write_chunk_file(path, holds="reads", **held) as writer:
                for packed, n_of_chunk in chain(
                    [first] if first else [], islice(chunks, n_chunks - 1)
                ):
                    writer.write(packed)
                    n_reads += n_of_chunk
            report(n_reads, counted(number + 1, "batch"))
    say(f"{counted(n_reads, 'read')}: {counted(max(1, number), 'batch')}")


def batch_size_of(backend: str) -> int:
    """Return the number of reads per batch for the engine of the next steps."""
    on_gpu = backend == "cuda" or (backend == "auto" and may_have_gpu())
    return _AUTO["cuda" if on_gpu else "cpu"]


def own_files(folder) -> list[str]:
    """Return patterns of the files of a folder of batches; the first matches in every one."""
    return list(dict.fromkeys(["0.reads", *batches_in(folder)]))
