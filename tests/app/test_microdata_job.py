"""The page Microdata, without a browser: what is published is the very result that was shown."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from louver.app.copying import Texts, WithFiles
from louver.app.jobs.microdata import KEPT, UNREGISTERED, anonymized, browsed, published, traced
from louver.app.pages.microdata import MicrodataChoices
from louver.app.pages.microdata_panels import More
from louver.errors import InputError
from louver.release.register import Register
from louver.release.verify import verify
from louver.run import Run
from louver.schema.source import SourceOptions

OPTIONS = {"quasi": ["age"], "sensitive": ["ill"], "k": 2, "method": "sorted", "seconds": 1.0}


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "people.csv"
    rows = [(31, "flu"), (33, "flu"), (34, "cold"), (52, "cold"), (55, "flu"), (58, "ulcer")]
    path.write_text("age,ill\n" + "".join(f"{age},{ill}\n" for age, ill in rows))
    return str(path)


def test_what_is_shown_is_what_is_published(people: str, tmp_path: Path) -> None:
    told = anonymized(people, SourceOptions(), OPTIONS, Run())
    assert told["smallest_class"] >= 2 and [name for name, _ in told["by_column"]] == ["age"]
    made = published(told["number"], {}, None, str(tmp_path / "out"), Run())
    assert made.pop("verdict")["level"] == "care"
    assert made == {"refused": None, "remark": UNREGISTERED, "words": ""}
    assert verify(tmp_path / "out").passed
    table = pq.read_table(tmp_path / "out" / "data" / "anonymized.parquet")
    assert KEPT.made is not None and table.equals(KEPT.made.table)
    with pytest.raises(InputError, match="out"):
        published(told["number"], {}, None, str(tmp_path / "out"), Run())
    anonymized(people, SourceOptions(), OPTIONS | {"k": 3}, Run())
    with pytest.raises(InputError, match="no longer available"):
        published(told["number"], {}, None, str(tmp_path / "another"), Run())


def test_people_who_share_a_status_are_counted(people: str) -> None:
    path = Path(people)
    path.write_text(path.read_text().replace("ulcer", "flu").replace("52,cold", "52,flu"))
    told = anonymized(people, SourceOptions(), OPTIONS | {"k": 2, "method": "exact"}, Run())
    assert told["alike"] == [["ill", 3]] and told["verdict"]["level"] == "care"


def test_what_the_verb_withholds_is_not_published(people: str, tmp_path: Path) -> None:
    """Two classes of three beside three of two: the third and the fourth person are alone where both are known."""
    Path(people).write_text("age,ill\n" + "".join(f"{age},{'abcdef'[age - 1]}\n" for age in range(1, 7)))
    options = OPTIONS | {"method": "exact"}
    number = anonymized(people, SourceOptions(), options | {"k": 3}, Run())["number"]
    published(number, {}, None, str(tmp_path / "first"), Run())
    again = options | {"against": [str(tmp_path / "first")]}
    told = anonymized(people, SourceOptions(), again, Run())
    found = published(told["number"], {}, None, str(tmp_path / "second"), Run())
    assert told["withheld"] and found["refused"] is not None and not (tmp_path / "second").exists()
    told = anonymized(people, SourceOptions(), again | {"accept": True}, Run())
    assert published(told["number"], {}, None, str(tmp_path / "second"), Run())["refused"] is None


def test_a_publication_is_entered_into_the_register(people: str, tmp_path: Path) -> None:
    options = OPTIONS | {"registry": str(tmp_path / "register")}
    number = anonymized(people, SourceOptions(), options, Run())["number"]
    assert not (tmp_path / "register").exists(), "a run publishes nothing"
    assert "is new" in published(number, {}, None, str(tmp_path / "out"), Run())["remark"]
    assert len(Register(tmp_path / "register").entries) == 1


def test_people_are_entered_by_their_key_whatever_rows_are_read(people: str, tmp_path: Path) -> None:
    """A condition on rows kept the publication out of the register; the key and the verb's remark did not reach the page."""
    path = Path(people)
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join([f"id,{lines[0]}", *(f"p{i},{line}" for i, line in enumerate(lines[1:]))]) + "\n"
    )
    options = OPTIONS | {"identifying": ["id"], "registry": str(tmp_path / "register")}
    number = anonymized(people, SourceOptions(where="age < 56"), options, Run())["number"]
    found = published(number, {"person": "id", "new_population": False}, None, str(tmp_path / "out"), Run())
    register = Register(tmp_path / "register")
    (entry,) = register.entries
    assert found["refused"] is None and "is new" in found["remark"]
    persons = register.sketch(entry.records).persons
    assert persons is not None and persons.column == "id" and persons.number == 6


THEN = "id,age,ill\n" + "".join(f"p{i},{30 + i},{'abc'[i % 3]}\n" for i in range(9))
NOW = "id,age,ill\n" + "".join(f"p{i},{31 + i},{'abc'[i % 3]}\n" for i in range(9))


def test_people_are_looked_up_by_the_values_of_then(tmp_path: Path) -> None:
    """Without the records of then, the verdict says that current values were used; with them and a key it does not."""
    for name, text in (("then.csv", THEN), ("now.csv", NOW)):
        (tmp_path / name).write_text(text)
    options = OPTIONS | {"identifying": ["id"]}
    number = anonymized(str(tmp_path / "then.csv"), SourceOptions(), options, Run())["number"]
    published(number, {}, None, str(tmp_path / "first"), Run())
    more = More(against=["first"])
    told = {}
    for link in ("", "id"):
        more.link, more.earlier = link, {"first": (str(tmp_path / "then.csv"), "then.csv")}
        asked = more.options(has_l=False, kept=[], releases=tmp_path)
        told[link] = anonymized(str(tmp_path / "now.csv"), SourceOptions(), options | asked, Run())["verdict"]
    assert "current values" in " ".join(told[""]["reasons"])
    assert "current values" not in " ".join(told["id"]["reasons"])
    copied = more.options(has_l=False, kept=[], releases=tmp_path, is_copied=True)
    assert copied["link"] == "id" and copied["earlier"] == ["then.csv"]
    more.earlier = {}
    with pytest.raises(InputError, match="choose the records that first was made from"):
        more.options(has_l=False, kept=[], releases=tmp_path)


def test_classes_are_browsed_from_the_smallest(people: str) -> None:
    number = anonymized(people, SourceOptions(), OPTIONS, Run())["number"]
    found = browsed(number, 0, "ascending", Run())
    sizes = [counts[0] for _, counts in found["rows"]]
    assert sizes == sorted(sizes) and sum(sizes) == 6 and found["columns"] == ["age"]
    assert found["sensitive"] == ["ill"] and all(1 <= counts[1] <= counts[0] for _, counts in found["rows"])
    largest = browsed(number, 0, "descending", Run())["rows"]
    assert [counts[0] for _, counts in largest] == sizes[::-1]
    assert browsed(number, 1, "ascending", Run())["rows"] == found["rows"][1:]


def test_the_curve_loses_more_with_k(people: str) -> None:
    told = traced(people, SourceOptions(), OPTIONS, (2, 3, 6), Run())
    points = dict(told["by_k"])
    assert sorted({2, 3, 6, told["k"]}) == list(points) and sorted(points.values()) == list(points.values())
    assert points[told["k"]] == told["gcp"], "the curve is of the result that is shown"


def test_files_that_a_command_needs_are_written_first() -> None:
    texts = WithFiles(Texts(("louver", "verify", "x"), "print()"), {"h 1.csv": "a,b\n"}).texts()
    assert texts["Command"] == "cat > 'h 1.csv' <<'END-OF-SPEC'\na,b\nEND-OF-SPEC\nlouver verify x"
    assert texts["Python"].startswith(
        "from pathlib import Path\n\nPath('h 1.csv').write_text('a,b\\n', encoding='utf-8')"
    )


def test_no_label_ends_a_file_early() -> None:
    hostile = 'x,"\nEND-OF-SPEC\ntouch harm\n"\n'
    command = WithFiles(Texts(("true",), ""), {"h.csv": hostile}).texts()["Command"]
    assert command.splitlines()[0] == "cat > h.csv <<'END-OF-SPEC-'"
    assert command.endswith("\nEND-OF-SPEC-\ntrue")


def test_a_search_by_rounds_is_repeated_exactly(people: str) -> None:
    asked = MicrodataChoices()
    assert asked.effort() == {"seconds": 10.0} and asked.has_rounds
    asked.seconds = "r10"
    options = {name: OPTIONS[name] for name in ("quasi", "k")} | asked.effort()
    one, other = (anonymized(people, SourceOptions(), options, Run()) for _ in range(2))
    assert options["steps"] == 10 and one["information_loss"] == other["information_loss"]
    told = traced(people, SourceOptions(), options, (2,), Run())
    assert told["information_loss"] == one["information_loss"] and 2 in dict(told["by_k"])
    asked.method = "sorted"
    assert asked.effort() == {"seconds": 3.0}, "which has no rounds"


def test_runs_stand_side_by_side_and_a_curve_is_of_its_choices() -> None:
    asked = MicrodataChoices()
    found = {"k": 5, "suppressed": 0, "classes": 3, "gcp": 0.1, "method": "auto"}
    asked.take(asked.choices(), found)
    asked.curve = {2: 0.05}
    asked.k = 3
    asked.take(asked.choices(), found | {"k": 3})
    assert asked.curve and [one["k"] for one in asked.tried] == [5, 3]
    asked.seconds = "30"
    asked.take(asked.choices(), found)
    assert not asked.curve, "a curve has one limit on time for all of its points"
    asked.curve = {2: 0.05}
    asked.recoding = "global"
    asked.take(asked.choices(), found)
    assert not asked.curve and asked.tried[-1]["recoding"] == "Whole file"


def test_further_demands_are_told_as_the_verb_takes_them(people: str, tmp_path: Path) -> None:
    assert More().is_empty() and More().options(has_l=True, kept=["ill"], releases=tmp_path) == {}
    recursive = More(l_kind="recursive", c="1.5").options(has_l=True, kept=[], releases=tmp_path)
    assert recursive == {"l_kind": "recursive", "c": 1.5}
    more = More(l_kind="entropy", t="0.4", distance="equal", against=["first"], accept=True)
    more.codes = {"top_code": {"income": "900", "age": "80"}, "round_to": {"income": ""}}
    told = more.options(has_l=True, kept=["income"], releases=tmp_path)
    assert told == {
        "l_kind": "entropy",
        "t": 0.4,
        "distance": "equal",
        "top_code": {"income": 900.0},
        "against": [str(tmp_path / "first")],
        "accept": True,
    }
    assert "l_kind" not in more.options(has_l=False, kept=[], releases=tmp_path)
    of_many = More(population="/kept/x.csv", population_name="town.csv", population_count="n", k_map=True)
    assert of_many.options(has_l=False, kept=[], releases=tmp_path)["population"] == "/kept/x.csv"
    copied = of_many.options(has_l=False, kept=[], releases=tmp_path, is_copied=True)
    assert copied == {"population": "town.csv", "population_count": "n", "k_map": True}
    found = anonymized(people, SourceOptions(), OPTIONS | {"t": 0.5, "l": 2.0, "l_kind": "entropy"}, Run())
    assert found["classes"] >= 1


@pytest.mark.parametrize(
    "more", [More(t="far"), More(codes={"top_code": {"income": "much"}})], ids=["t", "code"]
)
def test_a_demand_that_is_no_number_is_told(more: More) -> None:
    with pytest.raises(InputError, match="must be a number"):
        more.options(has_l=True, kept=["income"], releases=Path())
