"""Flow cell and lane are parsed from names of reads, or the names are errors."""

import pytest

from bwarp.errors import InputError
from bwarp.reads.read_chunks import single_chunks
from bwarp.records.output_options import platform_unit, with_platform_unit


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("A00123:45:HXXXXDSXX:2:1101:1000:2000", "HXXXXDSXX.2"),
        ("M01234:8:000000000-ABCDE:1:1101:15589:1331", "000000000-ABCDE.1"),
        ("A00123:45:HXXXXDSXX:4:1101:1000:2000:ACGT+GGTT", "HXXXXDSXX.4"),
        ("V350012345L1C001R00100000001", "V350012345.1"),
        ("E100012345L2C010R0030000123", "E100012345.2"),
        ("SRR123.1", None),
        ("HWI-EAS100R:6:73:941:1973#0", None),
        ("r1", None),
    ],
)
def test_names(name, unit):
    assert platform_unit(name) == unit


def chunks(folder, *names):
    (folder / "a.fq").write_text("".join(f"@{name}\nA\n+\nI\n" for name in names))
    return single_chunks(folder / "a.fq", 1)


def test_a_read_group_gets_that_of_the_first_read(tmp_path):
    group, given = with_platform_unit(
        "@RG\tID:a\tPU:auto\tSM:PU:auto", chunks(tmp_path, "V350012345L1C001R1", "other")
    )
    assert group == "@RG\tID:a\tPU:V350012345.1\tSM:PU:auto"
    assert [(chunk.name(0), chunk.first_template) for chunk in given] == [
        ("V350012345L1C001R1", 0),
        ("other", 1),
    ]
    assert with_platform_unit("@RG\tID:a\tPU:auto", iter(()))[0] == "@RG\tID:a"


def test_a_name_without_a_platform_unit(tmp_path):
    with pytest.raises(InputError) as error:
        with_platform_unit("@RG\tID:a\tPU:auto", chunks(tmp_path, "SRR1.1"))
    assert str(error.value) == (
        "read 'SRR1.1': the name does not contain flow cell and lane, as those of Illumina, "
        "Element and MGI do: write the platform unit instead of auto"
    )
