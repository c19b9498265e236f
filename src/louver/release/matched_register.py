"""A register matched with the people in the records, and whether the two may be audited together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from louver._words import counted, listed
from louver.data.people import Census, Common, Sketch, in_percent
from louver.data.read import ArrowStream, name_of, open_source
from louver.errors import InputError
from louver.privacy.ledger_finding import published_exactly
from louver.release.register import OPTION, Register, RegisterEntry
from louver.run import Run
from louver.schema.source import SourceOptions

__all__ = ["MatchedRegister"]

REMEDY = (
    "use the file of that publication, or confirm with --new-population that these are other people, or that you have checked what both "
    "reveal together."
)

IS_NEW = "the register is new: it has no earlier publications."


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedRegister:
    """A register, and its information about the people in these records.

    Attributes
    ----------
    entries : tuple of RegisterEntry
        Publications from the same records.
    sketch : Sketch or None
        The people in the records; None if not needed, because the register is empty and nothing is to be entered.
    same, apart : frozenset of str
        Sketches of the same records, and of records whose people are different according to the steward.
    remark : str or None
        A note for the reader if the register has nothing about these people, or if some of its publications are left out.
    is_apart_by_word : bool
        Whether only the steward's word says that the people of some publication are different.
    only_in_ledger : str or None
        A sentence about the exact publications about these people that a ledger lists and the register does not have.
    """

    register: Register
    entries: tuple[RegisterEntry, ...]
    sketch: Sketch | None
    same: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    remark: str | None = None
    is_apart_by_word: bool = False
    only_in_ledger: str | None = None

    @property
    def key(self) -> bytes:
        """The register's secret."""
        return self.register.key

    @classmethod
    def of(
        cls,
        folder: str | Path,
        data: str | Path | ArrowStream,
        source: SourceOptions,
        *,
        person: str | None = None,
        is_new_population: bool = False,
        is_publishing: bool,
        run: Run | None = None,
    ) -> MatchedRegister:
        """Open the register and look for the people of these records in it.

        Parameters
        ----------
        source : SourceOptions
            How the records are read; all of them are looked up, including those that `where` excludes.
        person : str, optional
            Column that identifies a person; by default the one recorded in the register, if these records have it.
        is_new_population : bool
            Whether the steward says that people who are not recognised are different from all in the register.
        is_publishing : bool
            Whether something is to be entered.

        Raises
        ------
        InputError
            If the people may be those of earlier publications with which the new one cannot be audited.
        """
        register = Register(folder)
        exact = published_exactly(data, table=source.table, query=source.query, run=run)
        if not register.entries and not is_publishing:
            only_in_ledger = _only_in_ledger(exact, ())
            return cls(
                register=register, entries=(), sketch=None, remark=IS_NEW, only_in_ledger=only_in_ledger
            )
        known = {entry.records: register.sketch(entry.records) for entry in register.entries}
        name = name_of(data, source.table)
        with open_source(data, **{**source.opening(), "where": None, "missing_code": {}}, run=run) as opened:
            census = Census(
                opened, register.key, weight=source.weight, person=person or _person_of(known, opened.columns)
            )
            sketch = census.sketch()
            own = sketch.digest
            others = {digest: one for digest, one in known.items() if digest != own}
            commons = dict(zip(others, census.compare(sketch, list(others.values())), strict=True))
        same, apart = _families(register.entries, {own} | {d for d, c in commons.items() if c.is_same})
        strange = [e for e in register.entries if e.records not in same and e.records not in apart]
        entries = tuple(entry for entry in register.entries if entry.records in same)
        if is_new_population and register.entries and len(entries) == len(register.entries):
            raise InputError(
                f"option --new-population: {name} has the same records as {register.folder.name}; leave the option out.",
                option="--new-population",
            )
        remark = None if register.entries else IS_NEW
        in_doubt = [e for e in register.entries if e.records not in same and _may_be_same(commons[e.records])]
        may_be_same = any(entry in strange for entry in in_doubt)
        if strange and not is_new_population:
            sentence = _strangers(strange, commons, name, register)
            if is_publishing or may_be_same:
                raise InputError(f"option {OPTION}: {sentence}; {REMEDY}", option=OPTION, file=name)
            remark = f"{sentence}."
        if in_doubt or (strange and is_new_population):
            word = "with --new-population" if is_new_population else "by an earlier --new-population"
            sentence = _strangers(in_doubt or strange, commons, name, register)
            remark = f"{sentence}; {word} they count as other people."
        if is_new_population:
            apart |= {entry.records for entry in strange}
        return cls(
            register=register,
            entries=entries,
            sketch=sketch,
            same=frozenset(same - {own}),
            apart=frozenset(apart),
            remark=remark,
            is_apart_by_word=bool(in_doubt),
            only_in_ledger=_only_in_ledger(exact, entries),
        )

    def append(self, content: Mapping[str, Any]) -> str:
        """Enter what is published now (`release.disclosures`), and return the entry's hash."""
        assert self.sketch is not None
        records = self.register.keep_sketch(self.sketch)
        return self.register.append(content, records, same=self.same, apart=self.apart)


def _only_in_ledger(exact: Sequence[str], entries: Sequence[RegisterEntry]) -> str | None:
    """What a ledger lists as published exactly and the register does not have, in a sentence; None if there is nothing."""
    left = list(exact)
    for name in (file["name"] for entry in entries for file in entry.content.get("files", ())):
        known = next((what for what in left if what.endswith(f", {name}")), None)
        if known is not None:
            left.remove(known)
    if not left:
        return None
    left = list(dict.fromkeys(left))
    more = "" if len(left) <= MOST_NAMED else f"; and {len(left) - MOST_NAMED:,} more"
    return (
        "A ledger lists exact publications about these people that are not in the register and were not checked together with the new "
        f"one: {'; '.join(left[:MOST_NAMED])}{more}."
    )


def _person_of(known: Mapping[str, Sketch], columns: Sequence[str]) -> str | None:
    """The column of persons last recorded in the register, if these records have it."""
    identifying = [one.persons.column for one in known.values() if one.persons is not None]
    return next((name for name in reversed(identifying) if name in columns), None)


def _families(entries: Sequence[RegisterEntry], same: set[str]) -> tuple[set[str], set[str]]:
    """All sketches of the same records, as declared by the entries, and those of other people."""
    n_known = 0
    while n_known < len(same):
        n_known = len(same)
        for entry in entries:
            family = {entry.records, *entry.same}
            if family & same:
                same |= family
    apart = {one for entry in entries if entry.records in same for one in entry.apart}
    apart |= {entry.records for entry in entries if same & set(entry.apart)}
    return same, apart - same


def _may_be_same(common: Common) -> bool:
    return common.share is None or common.share > 0


def _strangers(
    strange: Sequence[RegisterEntry], commons: Mapping[str, Common], name: str, register: Register
) -> str:
    """What is known about publications from other records, described by the publication with the most people in common.

    The result is a clause that does not begin with a file name, because pages capitalise its first letter.
    """
    unlike = [entry for entry in strange if commons[entry.records].share is None]
    if unlike:
        number, is_too_few = unlike[0].number, commons[unlike[0].records].is_too_few
        why = (
            "one of them has too few people to be found in a sample"
            if is_too_few
            else "they have no columns in common"
        )
        return f"it is not known whether {name} and the records of publication {number} are about the same people, for {why}"
    nearest = max(strange, key=lambda entry: commons[entry.records].share or 0)
    common = commons[nearest.records]
    if not common.share:
        n_entries = counted(len(register.entries), "publication")
        return f"the register holds {n_entries}, none of them about people who were found in {name}"
    return (
        f"as far as is known, {name} and the records of publication {nearest.number} are not the same, but have people in common "
        f"({in_percent(common.of_these)} of the people of {name}, {in_percent(common.of_earlier)} of the earlier ones, compared by "
        f"{_by(common.columns)}), so what both reveal together cannot be audited"
    )


MOST_NAMED = 5


def _by(columns: Sequence[str]) -> str:
    """The columns by which people were recognised, in words."""
    return listed(columns) if len(columns) <= MOST_NAMED else counted(len(columns), "column")
