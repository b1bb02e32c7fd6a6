"""Draw the timeline of a run, with one row per thread and one colour per step.

Every program writes a timeline with --timeline. The legend lists the seconds of each step over all
threads.
"""

from pathlib import Path

from bwarp.cli.program import program_parser
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.options.common import output
from bwarp.report.timeline_picture import parse_timeline, picture

EXAMPLES = """
bwarp map --index genome.index -1 R1.fq.gz -2 R2.fq.gz -o out.bam --sort \\
    --timeline t.json
bwarp draw-timeline t.json -o t.svg --title "map, 16 threads"
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT.svg", "picture to write"))
    parser.add_argument("timeline_file", metavar="T.json", help="file written by --timeline")
    parser.add_argument("--title", help="title of the picture (default: the name of the file)")
    return parser


def main(options):
    if not options.output.endswith(".svg"):
        raise UsageError(f"{options.output}: the output must end in .svg")
    check_outputs([options.output], [options.timeline_file])
    try:
        steps, names = parse_timeline(Path(options.timeline_file).read_text())
    except ValueError:
        raise InputError(
            f"{options.timeline_file}: not a timeline: give a file that --timeline wrote"
        ) from None
    title = options.title or Path(options.timeline_file).name
    write_text(options.output, picture(steps, names, title))
