"""How before.tar.gz was made: run once, by the louver of commit 47bdfae, so that later ones can be held to it.

make_before.py FOLDER    releases, ledgers, measured folders and interrupted runs
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from topdown_town import write_town

GROUPS = (
    "--unit=home",
    "--regions=county,town",
    "--domain=towns.csv",
    "--max-size=4",
    "--epsilon=1",
    "--out=out",
)


def louver(*arguments: str, stop: str = "") -> Callable[[], None]:
    """A command to be run in a child, killed at the event `stop`."""

    def run() -> None:
        from louver.cli import main

        def profile(frame: FrameType, what: str, argument: Any) -> None:
            if stop and f"{frame.f_code.co_qualname} {what}" == stop:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.argv = ["louver", *arguments]
        sys.setprofile(profile)
        main()

    return run


def in_child(folder: Path, task: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        task()
    os.waitpid(child, 0)


def write_people(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = [(f"h{i // 3}", ("GA", "NY")[i // 3 % 2], ("Cobb", "Kings")[i // 3 % 2]) for i in range(14)]
    (folder / "people.csv").write_text("home,county,town\n" + "".join(",".join(row) + "\n" for row in rows))
    (folder / "towns.csv").write_text("county,town\nGA,Cobb\nNY,Kings\n")


def main(root: Path) -> None:
    for name, stop, total in (
        ("groups-released", "", "noisy"),
        ("groups-public", "", "public"),
        ("groups-reserved", "Ledger.reserve return", "noisy"),
        ("groups-sealed", "Ledger.seal return", "noisy"),
    ):
        write_people(root / name)
        in_child(root / name, louver("ledger", "init", "people.csv.ledger", "--epsilon=3"))
        in_child(root / name, louver("groups", "people.csv", *GROUPS, f"--total={total}", stop=stop))
    for name, stop in (
        ("topdown-released", ""),
        ("topdown-reserved", "Ledger.reserve return"),
        ("topdown-sealed", "ReleaseWriter.seal call"),
    ):
        write_town(root / name)
        init = ("ledger", "init", "people.csv.ledger", "--epsilon=4", "--neighbours=change-record")
        in_child(root / name, louver(*init))
        in_child(root / name, louver("topdown", "run", "town.toml", "--out=out", stop=stop))
    in_child(root / "topdown-released", louver("topdown", "measure", "town.toml", "--out=measured"))
    write_people(root / "anonymized")
    in_child(
        root / "anonymized",
        louver(
            "anonymize",
            "people.csv",
            "--quasi=county,town",
            "-k3",
            "--identifying=home",
            "--method=sorted",
            "--out=out",
        ),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
