"""What belongs to one tab stays there, and goes with it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app import some_jobs
from louver.app import session as sessions
from louver.app.columns import ColumnChoices
from louver.app.jobs.data import first_rows
from louver.app.session import SAMPLES, Session, Setup
from louver.errors import Cancelled, InputError
from louver.run import Run
from louver.schema.source import SourceOptions


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_uploads_are_private_and_go(tmp_path: Path) -> None:
    one, other = Session(Setup(folder=tmp_path)), Session(Setup(folder=tmp_path))
    asyncio.run(one.upload("../../people\x1b.CSV", chunks(b"a,b\n", b"1,2\n")))
    assert one.opened is not None and other.opened is None
    path = Path(one.opened.path)
    assert path.read_bytes() == b"a,b\n1,2\n"
    assert path.parent.parent == tmp_path and path.suffix == ".csv"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert one.opened.name == "../../people?.CSV", "shown, and never a path"
    assert one.folder != other.folder
    one.close()
    assert not path.exists()
    assert other.folder.exists()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_uploads_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Setup(folder=tmp_path))
    with pytest.raises(InputError, match="this kind of file is not read"):
        asyncio.run(session.upload("people.exe", chunks(b"")))
    monkeypatch.setattr(sessions, "MAX_UPLOAD", 3)
    with pytest.raises(InputError, match="is larger than"):
        asyncio.run(session.upload("people.csv", chunks(b"ab", b"cd")))
    assert session.opened is None
    assert list(session.folder.iterdir()) == []


def test_all_uploads_together_have_a_limit(tmp_path: Path) -> None:
    """Of all tabs; what is refused or goes with its tab makes room again."""
    setup = Setup(folder=tmp_path, room=sessions.Room(6))
    one, other = Session(setup), Session(setup)
    asyncio.run(one.upload("a.csv", chunks(b"ab", b"cd")))
    for _ in range(2):
        with pytest.raises(InputError, match="all uploads together may have"):
            asyncio.run(other.upload("b.csv", chunks(b"ab", b"c")))
        assert list(other.folder.iterdir()) == []
    asyncio.run(other.upload("b.csv", chunks(b"ab")))
    with pytest.raises(InputError, match="all uploads together may have"):
        asyncio.run(one.upload("c.csv", chunks(b"c")))

    async def closed() -> AsyncIterator[bytes]:
        yield b""
        one.close()
        yield b"c"

    with pytest.raises(Cancelled):
        asyncio.run(one.upload("c.csv", closed()))
    asyncio.run(other.upload("d.csv", chunks(b"abcd")))
    with pytest.raises(InputError, match="all uploads together may have"):
        asyncio.run(other.upload("e.csv", chunks(b"e")))
    other.close()


def test_what_pages_keep_is_forgotten_with_the_data(tmp_path: Path) -> None:
    class Kept:
        pass

    session = Session(Setup(folder=tmp_path, file="people.csv"))
    assert session.open_start() and session.opened is not None and session.opened.path == "people.csv"
    kept = session.state(Kept)
    assert session.state(Kept) is kept
    session.count_by("n")
    assert session.opened.source.weight == "n"
    assert session.state(Kept) is not kept
    for name in SAMPLES:
        session.open_sample(name)
        assert Path(session.opened.path).is_file()
    assert not Session(Setup(folder=tmp_path)).open_start()


def test_an_address_is_not_shown(tmp_path: Path) -> None:
    """It may hold a password."""
    session = Session(Setup(folder=tmp_path, file="postgresql://me:secret@host/people"))
    assert session.open_start() and session.opened is not None
    assert "secret" not in session.opened.name + session.opened.copied


def test_a_page_says_what_it_takes(tmp_path: Path) -> None:
    session, taken = Session(Setup(folder=tmp_path)), []

    async def take(path: str, name: str) -> None:
        taken.append((Path(path).read_bytes(), name))

    session.receivers["outlines"] = sessions.Receiver(take, (".geojson",), 3, "a GeoJSON file")
    with pytest.raises(InputError, match="choose a GeoJSON file"):
        asyncio.run(session.receive("outlines", "map.csv", chunks(b"x")))
    with pytest.raises(InputError, match="choose a smaller one"):
        asyncio.run(session.receive("outlines", "map.geojson", chunks(b"xxxx")))
    with pytest.raises(InputError, match="no page asked"):
        asyncio.run(session.receive("other", "map.geojson", chunks(b"x")))
    asyncio.run(session.receive("outlines", "map.GeoJSON", chunks(b"x")))
    assert taken == [(b"x", "map.GeoJSON")]
    session.close()


def test_files_that_arrive_at_once_stay_apart(tmp_path: Path) -> None:
    """Somebody chooses a second file while the first is on its way."""
    session, taken = Session(Setup(folder=tmp_path)), []

    async def take(path: str, name: str) -> None:
        taken.append((name, Path(path).read_bytes()))

    async def slowly(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            await asyncio.sleep(0)
            yield part

    async def both() -> None:
        arriving = {"a.csv": slowly(b"a", b"A"), "b.csv": slowly(b"b", b"B", b"B")}
        await asyncio.gather(*(session.receive("spec", name, parts) for name, parts in arriving.items()))

    session.receivers["spec"] = sessions.Receiver(take)
    asyncio.run(both())
    assert sorted(taken) == [("a.csv", b"aA"), ("b.csv", b"bBB")]
    session.close()


def test_the_same_file_can_be_read_in_another_way(tmp_path: Path) -> None:
    session = Session(Setup(folder=tmp_path))
    session.open_sample("people")
    session.read_as(decimal_mark=",", where="age >= 18")
    assert session.opened is not None and session.opened.source.decimal_mark == ","
    with pytest.raises(InputError, match="where"):
        session.read_as(where="age >=")
    assert session.opened.source.where == "age >= 18", "what was there stays"
    session.close()


def test_rows_that_lack_a_value_can_be_passed_over(tmp_path: Path) -> None:
    session = Session(Setup(folder=tmp_path))
    session.open_sample("people")
    columns = session.state(ColumnChoices)
    columns.roles["age"] = "keep"
    session.only_known(["employment", 'a"b'])
    session.only_known(["age"])
    assert session.opened is not None
    where = '("employment" is not missing and "a""b" is not missing) and "age" is not missing'
    assert session.opened.source.where == where
    assert session.state(ColumnChoices) is columns and columns.profile is None, "roles stay, counts do not"
    columns.take(
        {
            "columns": [{"name": "age", "role": "quasi", "share_alone": 0, "alone": 0}],
            "dependencies": [],
            "share": 0.5,
        }
    )
    assert columns.roles == {"age": "keep"}
    session.close()


def test_a_file_goes_to_the_page_that_is_shown_when_it_has_arrived(tmp_path: Path) -> None:
    session, taken = Session(Setup(folder=tmp_path)), []

    def receiver(page: str) -> sessions.Receiver:
        async def take(path: str, name: str) -> None:
            taken.append(page)

        return sessions.Receiver(take)

    async def redrawn() -> AsyncIterator[bytes]:
        session.receivers["domain"] = receiver("drawn again")
        yield b"a"

    session.receivers["domain"] = receiver("first")
    asyncio.run(session.receive("domain", "a.csv", redrawn()))
    assert taken == ["drawn again"]
    session.close()


def test_a_tab_that_has_gone_starts_nothing(tmp_path: Path) -> None:
    """What was under way when it went finds no process and no folder to go on with."""
    session = Session(Setup(folder=tmp_path))
    session.close()
    with pytest.raises(Cancelled):
        asyncio.run(session.ask(some_jobs.add, 1, 2, key="add"))
    with pytest.raises(Cancelled):
        asyncio.run(session.upload("people.csv", chunks(b"")))
    assert list(tmp_path.iterdir()) == []


def test_reading_anew_keeps_what_was_decided_about_columns(tmp_path: Path) -> None:
    session = Session(Setup(folder=tmp_path, file="people.csv"))
    session.open_start()
    session.state(ColumnChoices).roles["age"] = "quasi"
    session.reread(missing_code={"age": ["99"]})
    assert session.opened is not None and session.opened.source.missing_code == {"age": ("99",)}
    assert session.state(ColumnChoices).roles == {"age": "quasi"}
    with pytest.raises(InputError):
        session.reread(missing_code={"age": [""]})
    assert session.state(ColumnChoices).roles == {"age": "quasi"}


def test_the_first_rows_are_shown_as_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,ill\n31,flu\n99,\n")
    found = first_rows(str(path), SourceOptions(missing_code={"age": ("99",)}), Run())
    assert found == {"columns": ["age", "ill"], "rows": [["31", "flu"], [None, None]]}


def test_sentences_of_a_verb_call_an_upload_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors did; verdicts and remarks named the file that it is kept in."""
    session = Session(Setup(folder=tmp_path))
    asyncio.run(session.upload("staff.csv", chunks(b"a")))
    kept = Path(session.opened.path).name

    async def answer(*_: object, **__: object) -> object:
        said = f"people of {kept}"
        return {"verdict": {"level": "care", "reasons": [said]}, "remark": said, "refused": None, "rows": 3}

    monkeypatch.setattr(sessions.Worker, "do", answer)
    found = asyncio.run(session.ask(print, key=""))
    verdict = {"level": "care", "reasons": ["people of staff.csv"]}
    assert found == {"verdict": verdict, "remark": "people of staff.csv", "refused": None, "rows": 3}
