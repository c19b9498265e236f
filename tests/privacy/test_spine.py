"""An arranged spine: the same sensitivity by enumerating neighbours, and nothing of it from the records."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from louver.errors import InputError
from louver.privacy.distributions import DiscreteLaplace
from louver.privacy.neighbours import Relation
from louver.topdown.load import read_design
from louver.topdown.measuring.noise_plan import make_plan, sensitivity
from louver.topdown.measuring.true_counts import true_batches
from louver.topdown.spine.arrange import spine_table
from privacy.test_topdown import HAMLET, LEAVES, UNIVERSE, levels_of, neighbours_of
from topdown_town import SPEC, write_town

AREAS = "leaf,area,kind\n11,east,district\n21,east,district\n12,west,district\n12,park,tribal\n"
SPINE = '[topdown.spine]\nareas = "areas.csv"\ntolerance = 9.0\nlevels = ["one", "two"]\n[topdown.queries]'
SHARES = 'levels = { hamlet = "1/7", one = "1/7", two = "1/7", block = "4/7" }'


@pytest.mark.parametrize("budget", ["epsilon = 7", 'rho = "7/3"\ndelta = 1e-9'], ids=["epsilon", "rho"])
@pytest.mark.parametrize("relation", [Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD])
def test_no_neighbour_moves_an_answer_further_than_declared(tmp_path, relation, budget):
    """Every query of every level, over all of its regions; and all of them together within the plan's loss."""
    (tmp_path / "leaves.csv").write_text("block\n" + "\n".join(LEAVES) + "\n")
    (tmp_path / "areas.csv").write_text(AREAS)
    text = HAMLET.format(budget=budget, neighbours=relation, invariants="")
    text = text.replace("[topdown.queries]", SPINE)
    text = text.replace('levels = { hamlet = "1/7", area = "2/7", block = "4/7" }', SHARES).replace(
        "area =", "two ="
    )
    (tmp_path / "hamlet.toml").write_text(text)
    design = read_design(tmp_path / "hamlet.toml")
    assert design.spine.leaves == ("11", "21", "12")  # the leaves of a district stand together
    plan = make_plan(design)
    answers = {}
    for data in UNIVERSE:
        batches = list(true_batches(plan, levels_of(plan, data)))
        answers[data] = {(b.level, b.query): b.true_counts for b in batches}
    noise = {(b.level, b.query): b.distribution for b in batches}
    largest, worst = dict.fromkeys(noise, (0, 0)), Fraction(0)
    for data in UNIVERSE:
        for other in neighbours_of(data, relation):
            spent = Fraction(0)
            for key, law in noise.items():
                difference = np.abs(answers[data][key] - answers[other][key])
                l1, l2_squared = int(difference.sum()), int((difference**2).sum())
                largest[key] = (max(largest[key][0], l1), max(largest[key][1], l2_squared))
                is_laplace = isinstance(law, DiscreteLaplace)
                spent += l1 / law.scale if is_laplace else Fraction(l2_squared) / (2 * law.sigma_squared)
            worst = max(worst, spent)
    assert all(found <= sensitivity(relation) for found in largest.values())
    assert {found for key, found in largest.items() if key[0] in ("one", "two")} == {sensitivity(relation)}
    assert worst <= plan.loss.amount <= design.budget.amount


TOWN = SPEC.replace(
    'town = "1/4", ward = "1/4", area = "1/4"', 'town = "1/4", ward = "1/4", "part 1" = "1/4"'
)


def test_the_spine_is_the_same_whatever_the_records_are(tmp_path):
    path = write_town(
        tmp_path,
        TOWN.replace(
            "[topdown.queries]", '[topdown.spine]\nareas = "a.csv"\nfixed = "ward"\n[topdown.queries]'
        ),
    )
    (tmp_path / "a.csv").write_text("leaf,area\n1A1,x\n1B,x\n2A1,y\n")
    before = spine_table(read_design(path).arrangement)
    people = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join(people[:3]) + "\n")
    assert spine_table(read_design(path).arrangement).equals(before)
    (tmp_path / "people.csv").unlink()
    assert spine_table(read_design(path).arrangement).equals(before)


def test_the_records_are_no_list_of_areas(tmp_path):
    path = write_town(
        tmp_path,
        TOWN.replace("[topdown.queries]", '[topdown.spine]\nareas = "./people.csv"\n[topdown.queries]'),
    )
    with pytest.raises(InputError, match="spine.areas.* names the confidential source"):
        read_design(path)
