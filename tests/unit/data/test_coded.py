"""Numbers that were text: the type of a column, and of one that is looked at in parts."""

from __future__ import annotations

from itertools import product

import pyarrow as pa

from louver.data.coded import common_type, number_type, typed

PIECES = (["1", None], ["1.5"], ["x"], [None], ["9" * 400 + ".0"])


def test_the_type_of_parts_is_that_of_the_whole() -> None:
    for pieces in product(PIECES, repeat=2):
        one, other = (number_type(pa.chunked_array([pa.array(piece, pa.string())])) for piece in pieces)
        whole = pa.chunked_array([pa.array(piece, pa.string()) for piece in pieces])
        assert common_type(one, other) == number_type(whole)
        assert typed(whole).type in (number_type(whole), pa.string())
