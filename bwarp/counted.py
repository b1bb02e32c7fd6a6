"""Format a count with its noun for messages."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count and a noun, in the plural unless the count is one.

    `many` is given if another word changes as well.

    >>> counted(1, "query"), counted(0, "locus"), counted(1200, "pair of primers")
    ('1 query', '0 loci', '1,200 pairs of primers')
    >>> counted(2, "read has", "reads have") + " no mate"
    '2 reads have no mate'
    """
    return f"{count:,} {one if count == 1 else many or _plural(one)}"


def _plural(noun: str) -> str:
    head, of, rest = noun.partition(" of ")
    if head.endswith("us"):
        head = head.removesuffix("us") + "i"
    elif head.endswith("y"):
        head = head.removesuffix("y") + "ies"
    else:
        head += "es" if head.endswith(("s", "x", "ch", "sh")) else "s"
    return head + of + rest
