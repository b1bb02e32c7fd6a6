"""Counts before nouns: 1 is singular in every message."""

import ast
import re

import pytest

from bwarp.counted import counted

#: Counts that are never 1: their file, and the text that follows.
NEVER_ONE = {
    ("bwarp/reference.py", " bases exceed the maximum of "),
    (
        "bwarp/alignment/gatk_run_lengths_cuda.py",
        " bases, but --algorithm run-lengths allows at ",
    ),
    ("bwarp/composition/scan.py", " bases exceed the maximum of "),
    ("bwarp/composition/scan.py", " bases, but the maximum is "),
    ("bwarp/index/build.py", " bases requires at least "),
    ("bwarp/records/comment_tags.py", " read groups, which batches do not keep:"),
    ("bwarp/mems/maximal_cuda.py", " bases of queries at a time exceed the maximum "),
    ("bwarp/primers/products.py", " bases, "),
    ("bwarp/seeding/find_cuda.py", " hits of k-mer "),
    ("bwarp/simulation/reads.py", " bases was found in "),
}


@pytest.mark.parametrize(
    ("noun", "one", "more"),
    [
        ("read", "1 read", "1,000 reads"),
        ("query", "1 query", "1,000 queries"),
        ("match", "1 match", "1,000 matches"),
        ("locus", "1 locus", "1,000 loci"),
        ("proper pair", "1 proper pair", "1,000 proper pairs"),
        ("pair of primers", "1 pair of primers", "1,000 pairs of primers"),
    ],
)
def test_counted(noun, one, more):
    assert (counted(1, noun), counted(1000, noun)) == (one, more)
    assert counted(0, noun) == more.replace("1,000", "0")


def sources(checkout):
    for path in sorted([*checkout.glob("bwarp/**/*.py"), *checkout.glob("workflow/lib/*.py")]):
        yield str(path.relative_to(checkout)), ast.parse(path.read_text())


def is_never_one(path: str, behind: str) -> bool:
    return any(path == where and behind.startswith(text) for where, text in NEVER_ONE)


def plurals(checkout) -> set[str]:
    """Return the plural nouns that the code counts; the first of several words."""
    return {
        counted(2, node.args[1].value).split()[1]
        for _, tree in sources(checkout)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "counted"
        if len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
    }


def test_all_messages_use_counted(checkout):
    nouns = plurals(checkout)
    assert {"reads", "queries", "loci", "hits"} <= nouns
    noun = re.compile(rf" ({'|'.join(sorted(nouns))})\b")
    found = []
    for path, tree in sources(checkout):
        for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
            for value, behind in zip(text.values, text.values[1:], strict=False):
                if not isinstance(value, ast.FormattedValue):
                    continue
                if not isinstance(behind, ast.Constant) or not noun.match(behind.value):
                    continue
                constant = isinstance(value.value, ast.Name) and value.value.id.isupper()
                if not constant and not is_never_one(path, behind.value):
                    found.append(
                        f"{path}:{value.lineno}: {{{ast.unparse(value.value)}}}{behind.value}"
                    )
    assert not found, "use bwarp.counted for:\n" + "\n".join(found)
