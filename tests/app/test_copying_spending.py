"""What the pages that spend copy asks for the same: run in a shell and as Python, the release differs by its noise alone."""

from __future__ import annotations

import json
import shlex
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from louver.app.copying import Repeatable
from louver.app.jobs.groups import release
from louver.app.jobs.topdown import described, released
from louver.app.pages import groups as groups_page
from louver.app.pages import topdown_form as topdown_page
from louver.app.session import Opened
from louver.app.spec_files import SpecFiles
from louver.cli.app import app as louver
from louver.data.samples import write_samples
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.run import Run
from louver.schema.source import SourceOptions
from louver.topdown.load import read_design
from topdown_town import SPEC, write_town

NOISY = ("created", "seconds", "results", "ledger_head", "files", "digest")


def asked_for(folder: Path) -> dict[str, Any]:
    """What a manifest says but for its noise."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return {key: value for key, value in manifest.items() if key not in NOISY}


def in_a_shell(call: Repeatable) -> None:
    """Run the command as a shell does: it writes the files, and the words it would run are run here."""
    log = 'louver() { for word in "$@"; do printf "%s\\0" "$word"; done; printf "\\n\\0"; }\n'
    done = subprocess.run(["sh", "-e", "-c", log + call.texts()["Command"]], capture_output=True, check=True)
    for line in done.stdout.decode().split("\n\0")[:-1]:
        found = CliRunner().invoke(louver, line.rstrip("\0").split("\0"))
        assert found.exit_code == 0, found.output


def ledger_at(path: Path, relation: Relation) -> Path:
    Ledger.create(path, Measure.EPSILON, relation, Fraction(9))
    return path


def test_group_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = "$(touch harm) 'x'.csv"
    Path(hostile).write_text("state,county,home\nA,1,1\nA,1,1\nA,2,2\nB,3,3\nB,3,3\nB,3,4\n")
    Path("domain.csv").write_text("state,county\nA,1\nA,2\nB,3\n")
    ledger = ledger_at(tmp_path / "homes.ledger", Relation.ADD_REMOVE_RECORD)
    asked = groups_page.GroupsChoices()
    asked.domain, asked.domain_copied, asked.unit, asked.max_size = "domain.csv", "domain.csv", "home", 3
    asked.columns = asked.regions = ["state", "county"]
    asked.sharing, asked.shares = "own", {"total": 1, "state": 1, "county": 2}
    release(hostile, {}, asked.options(), str(ledger), "page", Run())
    opened = Opened(path=hostile, name=hostile, copied=hostile, source=SourceOptions())
    asked.name = "shell"
    call = groups_page.repeated(asked, opened, ledger)
    assert call is not None
    in_a_shell(call)
    asked.name = "python"
    call = groups_page.repeated(asked, opened, ledger)
    assert call is not None
    exec(call.texts()["Python"], {})
    assert asked_for(Path("page")) == asked_for(Path("shell")) == asked_for(Path("python"))
    assert not Path("harm").exists() and "paid for again" in call.note


@pytest.mark.long
def test_topdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a spec that was uploaded, moved on the page, with a hostile name in it."""
    monkeypatch.chdir(tmp_path)
    hostile = "$(touch harm) `touch harm`"
    write_town(tmp_path, SPEC.replace("ward total", hostile))
    ledger = ledger_at(tmp_path / "town.ledger", Relation.CHANGE_RECORD)
    files = SpecFiles(tmp_path / "session")
    for name in ("town.toml", "people.csv", "leaves.csv", "facilities.csv"):
        copied = tmp_path / "arrived"
        copied.write_bytes((tmp_path / name).read_bytes())
        files.take(copied, name)
    asked = topdown_page.TopDownChoices()
    asked.files = files
    asked.open(files.ready())
    asked.reset(described(str(asked.spec), Run()))
    asked.amount, asked.is_moved, asked.choices["estimator"] = Fraction(1), True, "least-squares"
    released(str(asked.spec), asked.section(), str(ledger), "page", Run())
    for asked.name in ("shell", "python"):
        call = topdown_page.repeated(asked, ledger)
        assert call is not None and "paid for again" in call.note
        in_a_shell(call) if asked.name == "shell" else exec(call.texts()["Python"], {})
    assert asked_for(Path("page")) == asked_for(Path("shell")) == asked_for(Path("python"))
    assert Ledger(ledger).state().spent == 3 and not Path("harm").exists()


def test_the_sample_is_written_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_samples(tmp_path / "session")
    asked = topdown_page.TopDownChoices()
    asked.open(tmp_path / "session" / "county.toml", is_sample=True)
    assert topdown_page.repeated(asked, None) is None
    asked.reset(described(str(asked.spec), Run()))
    for amount in (2, 3):
        asked.amount = Fraction(amount)
        call = topdown_page.repeated(asked, None)
        assert call is not None
        demo, *first, last = call.texts()["Command"].splitlines()
        assert CliRunner().invoke(louver, shlex.split(demo)[1:]).exit_code == 0
        subprocess.run(["sh", "-e", "-c", "\n".join(first)], check=True)
        spec = shlex.split(last)[3]
        assert read_design(spec).budget.amount == amount
        assert read_design(spec).spine.sizes == (1, 11, 38, 1092)
        python = call.texts()["Python"].rpartition("\n")[0]
        exec(python, {})
