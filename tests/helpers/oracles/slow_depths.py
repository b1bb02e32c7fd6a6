"""Depths by the rules of mosdepth and its texts, base by base."""

from collections import Counter
from pathlib import Path

import numpy as np
import pysam

#: Unmapped, secondary, QC failure, duplicate.
_LEFT_OUT = 1796


def slow_depths(path: Path) -> dict[str, np.ndarray]:
    """Return the depth of each base of the contigs that have records, in their order."""
    with pysam.AlignmentFile(str(path)) as file:
        lengths = dict(zip(file.references, file.lengths, strict=True))
        changes = {name: np.zeros(length + 1, int) for name, length in lengths.items()}
        seen, found = {}, set()
        for record in file:
            if record.reference_id < 0:
                continue
            found.add(record.reference_name)
            if record.flag & _LEFT_OUT:
                continue
            own = changes[record.reference_name]
            if record.is_proper_pair and not record.is_supplementary:
                _take_back(record, seen, own)
            for start, stop in record.get_blocks():
                own[start] += 1
                own[stop] -= 1
    return {name: np.cumsum(changes[name])[:-1] for name in lengths if name in found}


def _take_back(record, seen: dict, changes: np.ndarray) -> None:
    """Count once what a record and its mate, seen before, both cover."""
    start, mate_start = record.reference_start, record.next_reference_start
    if (
        record.reference_id == record.next_reference_id
        and record.reference_end > mate_start
        and (start < mate_start or (start == mate_start and record.query_name not in seen))
    ):
        seen[record.query_name] = record
        return
    mate = seen.pop(record.query_name, None)
    if mate is None:
        return
    if len(record.cigartuples) == len(mate.cigartuples) == 1:
        changes[start] -= 1
        changes[mate.reference_end] += 1
        return
    common = set(record.get_reference_positions()) & set(mate.get_reference_positions())
    for position in common:
        changes[position] -= 1
        changes[position + 1] += 1


def slow_distribution(depths: dict[str, np.ndarray]) -> str:
    lines = []
    for name, own in [*depths.items(), ("total", np.concatenate([*depths.values(), []]))]:
        counts = Counter(own.tolist())
        share = 0.0
        for depth in range(int(max(counts, default=0)), -1, -1):
            if depth > 300 and not counts[depth]:
                continue
            share += counts[depth] / own.size if own.size else 0
            if share >= 8e-5:
                lines.append(f"{name}\t{depth}\t{share:.2f}\n")
    return "".join(lines)


def slow_summary(depths: dict[str, np.ndarray], regions: dict[str, np.ndarray] | None) -> str:
    """`regions`: the depths of the bases of the regions of each contig, one after another."""
    lines = ["chrom\tlength\tbases\tmean\tmin\tmax"]
    total = {"": list(depths.values())}
    if regions is not None:
        total["_region"] = [regions[name] for name in depths]
    for name, own in depths.items():
        lines.append(_line(name, own))
        if regions is not None:
            lines.append(_line(f"{name}_region", regions[name]))
    lines += [_line(f"total{kind}", np.concatenate([*parts, []])) for kind, parts in total.items()]
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, depths: np.ndarray) -> str:
    if not depths.size:
        return f"{name}\t0\t0\t0.00\t0\t0"
    total, least, most = int(depths.sum()), int(depths.min()), int(depths.max())
    return f"{name}\t{depths.size}\t{total}\t{total / depths.size:.2f}\t{least}\t{most}"
