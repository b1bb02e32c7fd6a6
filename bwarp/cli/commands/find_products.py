"""In-silico PCR: find the products of primer pairs in a genome.

The table of pairs has a line per pair: name, forward primer and reverse primer, 5' to 3', IUPAC
letters included. A primer binds with up to --mismatches substitutions, none among the last bases
at its 3' end (--last). OUT.tsv has the columns pair, contig, start, end, length, strand, left,
right, left_mismatches and right_mismatches. Positions are 0-based and half-open; the strand is + if
the forward primer is on the left.

OUT.pairs.tsv lists for each pair how often its primers bind, and its number of products.
"""

from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.options.finding import PRIMERS
from bwarp.primers.pairs import read_pairs
from bwarp.primers.products import (
    ProductOptions,
    find_products,
    layout_of,
    open_product_tables,
    product_tables_at,
)
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import progress, say
from bwarp.seeding.find import prepare
from bwarp.seeding.hits import SeedOptions

EXAMPLES = """
bwarp primers --index genome.index --pairs primers.tsv -o products.tsv
bwarp primers --index genome.index --pairs primers.tsv -o products.fa --mismatches 3 \\
    --last 5 --max-product 1000
bwarp primers --index genome.index --pairs primers.tsv -o products.bed --with-itself
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, PRIMERS)


def main(options):
    layout_of(options.output)
    limits = ProductOptions(
        options.mismatches, options.last, options.min_product, options.max_product,
        options.with_itself,
    )  # fmt: skip
    check_outputs(product_tables_at(options.output), [options.index, options.pairs])
    pairs = read_pairs(options.pairs)
    backend = choose_engine(options.backend)
    compile_first(backend, options, options.pairs)
    seeds = SeedOptions(options.mismatches, max_hits=0)
    stored = load_index(options.index)
    backend, index = or_on_cpu(
        options.backend, backend, lambda engine: prepare(stored, seeds, engine), say
    )
    done = 0
    with (
        open_product_tables(options.output, pairs, stored.reference) as tables,
        progress("pair", pairs.count) as report,
    ):
        for products, n_sites in find_products(
            index, stored.reference, pairs, limits, backend, options.threads
        ):
            tables.add(products, n_sites)
            done += n_sites.size // 2
            report(done, counted(tables.n_products, "product"))
    say(
        f"{counted(pairs.count, 'pair of primers')}: {counted(tables.n_products, 'product')} of "
        f"{counted(tables.n_pairs, 'pair')}, {pairs.count - tables.n_pairs:,} without a product"
    )
