"""Names of queries and contigs as bytes."""

from bwarp.io.names import Names, query_names
from tests.helpers.oracles.seed_hits_oracle import batch_of


def test_names_are_the_first_words_of_headers():
    headers = ["one", "two words", "\tthree \x0b", "ü 4", " ", "", "five\x0csix"]
    names = query_names(batch_of(dict.fromkeys(headers, b"A")))
    expected = ["one", "two", "three", "ü", "", "", "five"]
    assert [names.name(i) for i in range(len(headers))] == names.strings() == expected
    assert expected == batch_of(dict.fromkeys(headers, b"A")).names()
    assert names.first_empty() == 4
    assert Names.of(["a", "ü"]).first_empty() is None
    assert (names.longest, Names.of([]).longest) == (5, 0)
