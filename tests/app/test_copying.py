"""What is copied, run: as a command in a shell and as Python it gives what the page showed."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import louver as lv
from cli.command import child_environment
from louver.anonymize.options import AnonymizeOptions
from louver.app.copying import Call, show_ledger, verify_release
from louver.bounds.options import BoundsOptions
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.schema.source import SourceOptions

HOSTILE = "'; touch harm; echo $(touch harm) `touch harm` \" \\ , =cmd|' /C calc'!A0 <script>"


def bounds_call(**options: object) -> Call:
    about = SourceOptions(weight="count")
    return Call(
        options=BoundsOptions(**options),
        data="-people.csv",
        source=about,
        command="bounds",
        function="bounds",
    )


def in_a_shell(script: str, folder: Path) -> str:
    """What a shell prints that runs the script; `louver` is the one under test."""
    louver = f'louver() {{ "{sys.executable}" -m louver "$@" --json; }}\n'
    done = subprocess.run(
        ["sh", "-e", "-c", louver + script],
        cwd=folder,
        env=child_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_copied_calls_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With labels, a column and a file that try to be something else."""
    monkeypatch.chdir(tmp_path)
    quoted = HOSTILE.replace('"', '""')
    lines = [
        f'"{quoted}",ill,count',
        f'"{quoted}",no,4',
        "A,yes,3",
        "A,no,2",
        "B,no,9",
        f'"{quoted}",yes,1',
        "B,yes,2",
    ]
    Path("-people.csv").write_text("\n".join(lines) + "\n")
    call = bounds_call(
        rows=[HOSTILE],
        cols=["ill"],
        recode={HOSTILE: {f"{HOSTILE} or A": [HOSTILE, "A"]}},
        given=[{"row": {HOSTILE: "B"}, "at_least": 2}],
        small=3,
    )
    expected = lv.bounds(
        "-people.csv",
        weight="count",
        **call.options.model_dump(include={"rows", "cols", "recode", "given", "small"}),
    ).to_dict()
    assert json.loads(in_a_shell(call.shell(), tmp_path)) == expected
    found: dict[str, object] = {}
    exec(call.python(), found)
    assert found["result"].to_dict() == expected
    assert not Path("harm").exists()


@pytest.mark.long
def test_what_releases_and_ledger_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age\n30\n30\n41\n41\n")
    release, ledger = f"-{HOSTILE.replace('/', '')}", f"-{HOSTILE.replace('/', '')}.ledger"
    lv.anonymize("people.csv", quasi=["age"], k=2, out=release)
    Ledger.create(Path(ledger), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    checks, told = verify_release(release).texts(), show_ledger(ledger).texts()
    assert json.loads(in_a_shell(checks["Command"], tmp_path))["passed"]
    assert json.loads(in_a_shell(told["Command"], tmp_path))["granted"] == "9"
    exec(checks["Python"] + "\n" + told["Python"], {})
    assert capsys.readouterr().out == f"{lv.verify(release)}\n{Ledger(Path(ledger)).state()}\n"
    assert not Path("harm").exists()


def test_what_somebody_accepts_is_copied() -> None:
    texts = verify_release("out", skip_report=True, accept_strings=40).texts()
    assert texts["Command"] == "louver verify out --skip-report --accept-strings 40"
    assert texts["Python"].endswith("print(lv.verify('out', skip_report=True, accept_strings=40))")


def test_options_are_flags_where_they_can_be() -> None:
    call = bounds_call(rows=["age", "sex"], cols=["ill"], decimals=3)
    assert call.shell() == "louver bounds ./-people.csv --rows=age,sex --cols=ill --decimals=3 --weight=count"
    assert call.python().splitlines()[2:4] == ["result = lv.bounds(", "    '-people.csv',"]


def test_every_form_of_option() -> None:
    options = AnonymizeOptions(
        quasi=["age", "zip"],
        k=7,
        weights={"age": 0.5},
        hierarchy={"zip": "zip.csv"},
        ordered={"age": (), "zip": ("1", "2")},
    )
    call = Call(
        options=options,
        data="people.csv",
        source=SourceOptions(),
        command="anonymize",
        function="anonymize",
        more={"--out": "safe people"},
        files={"zip.csv": "1,a\nEND-OF-SPEC\n"},
    )
    shell = call.shell()
    assert shell.startswith(
        "cat > zip.csv <<'END-OF-SPEC-'\n1,a\nEND-OF-SPEC\nEND-OF-SPEC-\nlouver anonymize people.csv "
    )
    for part in (
        "--quasi=age,zip",
        "-k7",
        "--weights=age=0.5",
        "--hierarchy=zip=zip.csv",
        "'--out=safe people'",
        "--ordered=zip=1,2",
    ):
        assert part in shell
    assert "out='safe people'" in call.python()
    assert "Path('zip.csv').write_text(" in call.python()
