"""The files of --qc, which samtools and mosdepth would write about a sorted file.

    SAMPLE.flagstat                       samtools flagstat
    SAMPLE.idxstats                       samtools idxstats
    SAMPLE.stats                          samtools stats
    SAMPLE.mosdepth.global.dist.txt       mosdepth
    SAMPLE.mosdepth.summary.txt
    SAMPLE.mosdepth.region.dist.txt       mosdepth --by, with regions
    SAMPLE.regions.bed.gz

SAMPLE is the name of the file without its ending; MultiQC takes the sample from these names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bwarp.bam.header import BamHeader, contig_name
from bwarp.checks import mosdepth_texts, samtools_texts
from bwarp.checks.checker import Checker
from bwarp.io.atomic_output import atomic_files, make_folder
from bwarp.io.bed_regions import Region, read_named_regions

_ENDINGS = (
    ".flagstat", ".idxstats", ".stats", ".mosdepth.global.dist.txt", ".mosdepth.summary.txt",
)  # fmt: skip
_ENDINGS_OF_REGIONS = (".mosdepth.region.dist.txt", ".regions.bed.gz")


@dataclass(frozen=True)
class CheckFiles:
    """Where to write the files of a run.

    Attributes
    ----------
    folder : str
    output : str
        The file of alignments; the name of the sample is taken from its name.
    regions_file : str or None
        BED of regions whose depths are counted as well.
    """

    folder: str
    output: str
    regions_file: str | None = None

    @property
    def paths(self) -> list[Path]:
        """The files, in the order of the texts."""
        sample = Path(self.output).stem
        endings = _ENDINGS + (_ENDINGS_OF_REGIONS if self.regions_file else ())
        return [Path(self.folder, f"{sample}{ending}") for ending in endings]

    @property
    def outputs(self) -> list[Path]:
        """What the run writes: the files, or their folder if it is new."""
        return self.paths if Path(self.folder).exists() else [Path(self.folder)]

    @contextmanager
    def checking(self, header: BamHeader, threads: int) -> Iterator[Checker]:
        """Yield a checker for the records of the file; write the files at the end.

        Raises
        ------
        InputError
            If the file of regions is not BED, or a region is not in the reference.
        """
        regions: list[Region] = []
        if self.regions_file is not None:
            names = [contig_name(name) for name in header.names]
            regions = read_named_regions(self.regions_file, names, header.contig_starts)
        bounds = [(region.start, region.stop) for region in regions]
        checker = Checker(header, self.output, bounds, threads)
        yield checker
        checked = checker.finish()
        texts = [
            samtools_texts.flagstat(checked.counts),
            samtools_texts.idxstats(header, checked.counts),
            samtools_texts.stats(checked),
            mosdepth_texts.distribution(header, checked, of_regions=False),
            mosdepth_texts.summary(header, checked, with_regions=bool(regions)),
        ]
        if regions:
            texts += [
                mosdepth_texts.distribution(header, checked, of_regions=True),
                mosdepth_texts.region_means(header, regions, checked.region_sums),
            ]
        make_folder(self.folder)
        with atomic_files(self.paths) as files:
            for file, text in zip(files, texts, strict=True):
                file.write(text.encode(errors="surrogateescape"))
