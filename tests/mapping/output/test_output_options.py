"""What a run of mapping writes, and how its header says how it was called."""

from dataclasses import replace

from bwarp import __version__
from bwarp.mapping.output.output_options import AlignmentOutput, mapping_program
from bwarp.mapping.parameters import END_TO_END, mapping_parameters

OUTPUT = AlignmentOutput("/home/me/o.bam", False, False, "@RG\tID:1", b"1", False, None, 1 << 20)


def test_the_command_line_has_every_option_that_decides_the_records_in_a_fixed_order():
    parameters = mapping_parameters(
        2, mode=END_TO_END, mismatch=-3, insert_size=(400.0, 60.25), orientation="RF"
    )
    output = replace(OUTPUT, sort=True, mark_duplicates=True, comments=True)
    assert mapping_program(parameters, output) == (
        f"@PG\tID:bwarp\tPN:bwarp\tVN:{__version__}\tCL:bwarp map --mode end-to-end --match 2 "
        "--mismatch -3 --gap-open 12 --gap-extend 2 --clip 10 --min-score 60 --insert-size "
        "400,60.25 --orientation RF --sort --mark-duplicates --comments"
    )


def test_the_command_line_is_that_of_the_work_not_of_where_it_is_done():
    parameters = mapping_parameters()
    elsewhere = AlignmentOutput("o.sam", False, False, None, b"", False, "ref.fa", 5)
    assert mapping_program(parameters, OUTPUT) == mapping_program(parameters, elsewhere)
    typed = mapping_parameters(1, mismatch=-4, gap_open=6, clip=5, least_score=30)
    assert mapping_program(typed, OUTPUT) == mapping_program(parameters, OUTPUT)
