"""The seam between a verb and where its batches run."""

from __future__ import annotations

from functools import partial

import pytest

from louver.engine.engines import ONE_CORE, open_engine
from louver.errors import Cancelled, InputError
from louver.run import Run


def scaled(factor, piece, run):
    run.check()
    return factor.value * piece


@pytest.mark.parametrize("address", ["local:1", "local:3"])
def test_results_come_in_order(address):
    with open_engine(address) as engine:
        assert list(engine.map(partial(scaled, engine.share(10)), range(20), None)) == [
            10 * i for i in range(20)
        ]


def test_a_cancelled_run_ends_before_the_next_piece():
    run, seen = Run(), []

    def work(piece, told):
        assert told is run
        seen.append(piece)
        run.cancel()

    with pytest.raises(Cancelled):
        list(ONE_CORE.map(work, [1, 2, 3], run))
    assert seen == [1]


@pytest.mark.parametrize(
    "address", ["", "local", "local:", "local:0", "local:x", "local:1025", "spark://h:1"]
)
def test_an_engine_that_does_not_exist(address):
    with pytest.raises(InputError, match="engine must be local:N") as error:
        open_engine(address)
    assert error.value.option == "--engine"
