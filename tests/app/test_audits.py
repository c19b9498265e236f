"""The page Audit, without a browser: several tables are described, audited and published as the verb does it."""

from __future__ import annotations

from pathlib import Path

import pytest

import louver as lv
from louver.app.columns import ColumnChoices, MergeTree
from louver.app.jobs.tables import audited_together, published_together
from louver.app.pages.audit import Audits, Draft, advised, piece_of, piece_text, repeated
from louver.app.session import Opened
from louver.errors import InputError
from louver.run import Run
from louver.schema.source import SourceOptions

COUNTS = {("A", "y"): 12, ("A", "n"): 30, ("B", "y"): 2, ("B", "n"): 26}
SOURCE = SourceOptions(weight="count")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("town,ill,count\n" + "".join(f"{town},{ill},{n}\n" for (town, ill), n in COUNTS.items()))
    return path


def described(**changes: object) -> dict[str, object]:
    return piece_of(
        Draft(name="some", **changes), ColumnChoices(trees={"town": MergeTree({"A": 42, "B": 28})})
    )


def test_tables_are_described_as_the_verb_takes_them() -> None:
    counts = described(places={"town": "by", "ill": "by"}, below="5", base="3")
    assert counts == {"name": "some", "by": ["town", "ill"], "totals": True, "below": 5, "base": 3}
    shares = described(
        kind="shares", places={"town": "rows", "ill": "cols"}, decimals="2", only="town", labels={"B", "A"}
    )
    assert shares["where"] == {"town": ["A", "B"]} and shares["decimals"] == 2 and shares["counts"] == "total"


def test_a_level_of_a_hierarchy_is_a_recode() -> None:
    tree = MergeTree({"A": 42, "B": 28, "C": 1})
    tree.merge(1, ["A", "B"], "AB")
    found = piece_of(Draft(name="some", places={"town": "by:1"}), ColumnChoices(trees={"town": tree}))
    assert found["recode"] == {"town": {"AB": ["A", "B"]}}


@pytest.mark.parametrize(
    "changes",
    [{"below": "few"}, {"kind": "shares", "places": {"town": "rows"}}, {"name": ""}],
    ids=str,
)
def test_a_table_that_the_verb_does_not_take_is_told(changes: dict[str, object]) -> None:
    draft = Draft(**{"name": "some", "places": {"town": "by"}, **changes})
    with pytest.raises(InputError):
        piece_of(draft, ColumnChoices())


@pytest.mark.parametrize(
    "changes", [{"pieces": []}, {"small": "few"}, {"within": "x"}, {"small": "0"}], ids=str
)
def test_limits_that_are_none_are_told(changes: dict[str, object]) -> None:
    state = Audits(pieces=[described(places={"town": "by"})])
    for name, value in changes.items():
        setattr(state, name, value)
    with pytest.raises(InputError):
        state.options("register")


def test_what_two_tables_give_away_together_is_told_and_not_published(people: Path, tmp_path: Path) -> None:
    everybody = described(places={"ill": "by"})
    one_town = {**described(places={"ill": "by"}, only="town", labels={"A"}), "name": "A"}
    asked = Audits(pieces=[everybody, one_town]).options(str(tmp_path / "register"))
    found = audited_together(str(people), SOURCE, asked, Run())
    assert found["verdict"]["level"] == "stop" and found["n_cells"] >= 1
    assert any(cell["range"] == "2" for cell in found["cells"])
    assert published_together(str(people), SOURCE, asked, str(tmp_path / "out"), Run())["refused"]
    assert not (tmp_path / "out").exists()
    asked = Audits(pieces=[everybody]).options(str(tmp_path / "register"))
    assert published_together(str(people), SOURCE, asked, str(tmp_path / "out"), Run())["refused"] is None
    assert lv.verify(tmp_path / "out").passed
    again = Audits(pieces=[one_town]).options(str(tmp_path / "register"))
    assert published_together(str(people), SOURCE, again, str(tmp_path / "two"), Run())["refused"]


def test_what_is_copied_asks_the_same(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = Audits(pieces=[described(places={"ill": "by"}, below="5")], within="5", with_register=False)
    opened = Opened(path=str(people), name="people.csv", copied=str(people), source=SOURCE)
    copied = repeated(state.options("register"), opened)
    ((name, text),) = copied.files.items()
    (tmp_path / name).write_text(text, encoding="utf-8")
    told = lv.audit(spec=tmp_path / name)
    assert (told.within, told.tables) == (5.0, ("some",))
    assert copied.texts()["Command"].endswith("louver audit louver-explore.toml")


def test_proposed_cells_are_hidden_and_the_table_published(people: Path, tmp_path: Path) -> None:
    piece = {"name": "some", "by": ["town", "ill"], "totals": True, "below": 5}
    state = Audits(pieces=[piece, {"name": "other", "by": ["town"]}], hide=True)
    register, out = str(tmp_path / "register"), str(tmp_path / "out")
    found = audited_together(str(people), SOURCE, state.options(register), Run())
    assert found["hide"][0]["safe"] and found["verdict"]["level"] == "stop"
    state.hide_more(found["hide"])
    assert state.result is None and "hide" not in state.pieces[1] and "hidden" in piece_text(state.pieces[0])
    published = published_together(str(people), SOURCE, state.options(register), out, Run())
    assert published["refused"] is None


def test_leaving_every_table_out_is_no_advice() -> None:
    found = {"advised": "without: some", "n_out": 1, "hide": []}
    assert advised(found, 1) == [] and advised(found, 2) == ["Safe without: some."]
