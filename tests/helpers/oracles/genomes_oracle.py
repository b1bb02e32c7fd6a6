"""Sites of several genomes: each is searched alone, and its sites are placed base by base."""

from tests.helpers.oracles.offtargets_oracle import sites


def places_of(piece) -> dict:
    """Return start and end in the reference of each base of a piece; inserted ones have a point."""
    places, genome, reference = {}, 0, piece.reference_start
    ops = piece.ops
    for number, (letter, n) in enumerate(ops):
        around = {ops[i][0] for i in (number - 1, number + 1) if 0 <= i < len(ops)}
        for _ in range(n):
            if letter == "M":
                places[genome] = reference, reference + 1
            elif letter == "I" and "D" not in around:
                places[genome] = reference, reference
            genome += letter != "D"
            reference += letter != "I"
    if piece.is_reverse:
        return {piece.stop - 1 - at: place for at, place in places.items()}
    return {piece.start + at: place for at, place in places.items()}


def lifted(pieces, maps, contig, start, end):
    """Return contig, start, end and direction of a part of the genome, or None."""
    best = None
    for number, one in enumerate(pieces):
        if one.genome == contig and one.start <= start and end <= one.stop:
            key = (-one.score, one.start, number)
            best = min(best, key) if best else key
    if best is None:
        return None
    one, places = pieces[best[2]], maps[best[2]]
    if start not in places or end - 1 not in places:
        return None
    first, last = places[start], places[end - 1]
    if one.is_reverse:
        first, last = last, first
    return one.reference, first[0], last[1], one.is_reverse


def merged_sites(reference, genomes, guides, pams, side, limits) -> list[dict]:
    """Return rows of the reference and of genomes.

    Parameters
    ----------
    genomes : dict
        Contigs, and pieces or None, of each genome by its name.
    """
    rows, order = {}, []

    def border_of(start, end, strand):
        return end if (strand == "+") == (side == 3) else start

    def add(key, row, origin, where):
        rows[key] = {
            "bases": row[:4], "contig": row[4], "start": row[5], "end": row[6], "strand": row[7],
            "edits": sum(row[8:]), "origin": origin, "coordinates": where, "genomes": set(),
            "aligned": 0,
        }  # fmt: skip
        order.append(key)

    for row in sites(reference, guides, pams, side, *limits):
        place = (row[4], row[7], border_of(row[5], row[6], row[7]))
        add((row[:4], place), row, "reference", "reference")
    known = list(order)
    for name, (contigs, pieces) in genomes.items():
        pieces = pieces or []
        maps = [places_of(one) for one in pieces]
        apart = set()
        for key in known:
            one = rows[key]
            if any(
                piece.reference == one["contig"] and piece.reference_start <= one["start"]
                and one["end"] <= piece.reference_stop for piece in pieces
            ):  # fmt: skip
                one["aligned"] += 1
            else:
                apart.add(key)
        for row in sites(contigs, guides, pams, side, *limits):
            place = lifted(pieces, maps, *row[4:7])
            if place is not None:
                contig, start, end, is_reverse = place
                strand = "+-"[(row[7] == "-") != is_reverse]
                keys = [(row[:4], (contig, strand, border_of(start, end, strand)))]
                length = row[6] - row[5]
                other = border_of(end - length, start + length, strand)
                keys.append((row[:4], (contig, strand, other)))
                key = next((key for key in keys if key in known), keys[0])
                if key not in rows:
                    row = (*row[:4], contig, start, end, strand, *row[8:])
                    add(key, row, "alternative", "reference")
                rows[key]["genomes"].add(name)
                continue
            same = [key for key in apart if key[0] == row[:4]]
            for key in same:
                rows[key]["genomes"].add(name)
            if not same:
                key = (row[:4], None)
                if key not in rows:
                    add(key, row, "alternative", name)
                rows[key]["genomes"].add(name)
    for key in order:
        here = [
            other for other in order if key[1] and (other[0][0], other[1]) == (key[0][0], key[1])
        ]
        there = set().union(*(rows[other]["genomes"] for other in here))
        rows[key]["lost"] = len(genomes) - len(there)
        rows[key]["before"] = next(
            (rows[other]["edits"] for other in here if rows[other]["origin"] == "reference"), None
        )
    return [rows[key] for key in order]
