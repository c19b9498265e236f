"""The probability that a record of a sample is linked to the right person, for each set of columns that an attacker may know.

Every scenario is a set of columns. A record of the file is compared with the people of the population: by its sampling weight, by the
size of the population, or, where neither is known, as if the file were the whole population, which is the safe assumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver._words import listed
from louver.data.coded import CodedColumn, number_type
from louver.errors import InputError
from louver.profile.load import ProfileProblem
from louver.profile.options import ProfileOptions
from louver.profile.singling import RecordHash
from louver.run import Run

__all__ = ["RecordRisk", "ScenarioRisk", "measure_scenarios"]

LEVELS = (0.5, 0.2, 0.1, 0.05, 0.01)
"""Risk levels; the records at or above each are counted."""
SUGGESTED = "suggested roles"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordRisk:
    """Risks of individual records, in the order of the file. Confidential.

    Attributes
    ----------
    individual : ndarray of float64, shape (n,)
        Probability that the record is linked to the right person.
    household : ndarray of float64, shape (n,) or None
        Probability that at least one person in its household is.
    suda : ndarray of float64, shape (n,)
        SUDA2 score: the smaller the sets of columns that single the record out, and the more there are, the higher.
    """

    individual: Floats
    household: Floats | None
    suda: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRisk:
    """What an attacker who knows certain columns can find. Confidential.

    Attributes
    ----------
    name : str
    columns : tuple of str
    people : float
        People of the population.
    fraction : float
        Records of the file per person of the population.
    unique_records : int
        Records whose combination of values no other record has.
    prosecutor_highest : float
        1 / records with the combination: for an attacker who knows that the person is in the file.
    journalist_highest : float
        Highest individual risk: for an attacker who does not know that.
    marketer : float
        Average individual risk: share of all records that are linked to the right person.
    expected_matches : float
        Sum of the individual risks.
    at_or_above : tuple of (float, int)
        Records with at least this individual risk.
    household_highest, expected_households : float or None
        The same for households with at least one linked member.
    unique_people : tuple of (str, float or None)
        Expected number of people unique in the population, by model; None if the sample does not fit the model.
    match_is_right : float or None
        Probability that a match is right if a person matches only one record (data intrusion simulation).
    minimal_uniques : tuple of int
        Number of records singled out by one column, by two but not fewer, and so on.
    contributions : tuple of (str, float)
        Share of the SUDA2 score that involves each column, largest first.
    records : RecordRisk
    """

    name: str
    columns: tuple[str, ...]
    people: float
    fraction: float
    unique_records: int
    prosecutor_highest: float
    journalist_highest: float
    marketer: float
    expected_matches: float
    at_or_above: tuple[tuple[float, int], ...]
    household_highest: float | None
    expected_households: float | None
    unique_people: tuple[tuple[str, float | None], ...]
    match_is_right: float | None
    minimal_uniques: tuple[int, ...]
    contributions: tuple[tuple[str, float], ...]
    records: RecordRisk = field(compare=False, repr=False)

    @property
    def sentence(self) -> str:
        """The expected matches, worded for a verdict."""
        return (
            f"Anyone who knows {listed(self.columns)} ({self.name}) finds about {_rounded(self.expected_matches)} of the people in the "
            "file."
        )

    def lines(self) -> list[str]:
        """The text for a steward: probabilities, and the columns behind them."""
        whole = (
            "the whole population" if self.fraction >= 1 else f"a sample of about {self.people:,.0f} people"
        )
        by_model = ", ".join(
            f"{_rounded(people)} ({model})" for model, people in self.unique_people if people is not None
        )
        lines = [
            f"Risk from an attacker who knows {listed(self.columns)} ({self.name}); the file is taken as {whole}:",
            f"  expected correct matches {_rounded(self.expected_matches)}; highest risk {_chance(self.journalist_highest)}, "
            f"average {_chance(self.marketer)}; {_chance(self.prosecutor_highest)} for an attacker who knows that the person is in the "
            "file",
            f"  records alone in the file {self.unique_records:,}; people alone in the population: {by_model or 'not known'}",
        ]
        if self.expected_households is not None and self.household_highest is not None:
            lines.append(
                f"  households with a correct match: {_rounded(self.expected_households)} expected, highest risk "
                f"{_chance(self.household_highest)}"
            )
        if self.match_is_right is not None and self.fraction < 1:
            lines.append(f"  chance that a unique match is correct: {_chance(self.match_is_right)}")
        if any(self.minimal_uniques):
            sizes = ", ".join(
                f"{n:,} by {size} column{'s' if size > 1 else ''}"
                for size, n in enumerate(self.minimal_uniques, 1)
            )
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.contributions)
            lines += [f"  records singled out: {sizes}", f"  part of each column in this (SUDA2): {shares}"]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Everything except the individual records, in JSON form."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "records"}
        plain["at_or_above"] = [{"risk": risk, "records": n} for risk, n in self.at_or_above]
        plain["unique_people"] = [{"model": model, "people": n} for model, n in self.unique_people]
        plain["contributions"] = [{"column": name, "share": share} for name, share in self.contributions]
        return plain


def measure_scenarios(
    problem: ProfileProblem, suggested: tuple[str, ...], options: ProfileOptions, run: Run
) -> tuple[ScenarioRisk, ...]:
    """The risk of each scenario; without scenarios, that of the suggested quasi-identifiers if a population is known."""
    if not (options.scenario or options.sampling_weight or options.population_size):
        return ()
    scenarios: Mapping[str, tuple[str, ...]] = options.scenario or {SUGGESTED: suggested}
    weights = _weights(problem, options)
    places = {column.name: place for place, column in enumerate(problem.columns)}
    hashes = RecordHash(problem)
    return tuple(
        _measure(
            problem, name, columns, [places[one] for one in columns], weights, hashes, options.largest, run
        )
        for name, columns in scenarios.items()
        if columns and problem.n_rows
    )


def _rounded(number: float) -> str:
    """An expected number of people, rounded to its precision."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _chance(share: float) -> str:
    """A probability with two digits, never rounded to zero."""
    return f"{100 * share:.2g} %" if share >= 1e-5 else "<0.001 %"


def _weights(problem: ProfileProblem, options: ProfileOptions) -> Floats:
    """People of the population that each record stands for."""
    if options.sampling_weight is not None:
        column = next(one for one in problem.columns if one.name == options.sampling_weight)
        return _numbers(column)
    people = options.population_size or problem.n_rows
    if people < problem.n_rows:
        raise InputError(
            "option --population-size is smaller than the number of records; give the size of the population that the sample was drawn "
            "from.",
            option="--population-size",
        )
    return np.full(problem.n_rows, people / max(problem.n_rows, 1))


def _numbers(column: CodedColumn) -> Floats:
    """The sampling weights, each of which must be a number of 1 or more."""
    is_number = number_type(pa.chunked_array([column.values])) is not None
    values: Floats = np.zeros(column.n_values + 1)
    if is_number and column.n_values:
        values[:-1] = np.from_dlpack(pc.cast(column.values, pa.float64()))
    bad = np.flatnonzero(values[column.codes] < 1)
    if len(bad):
        row = int(bad[0]) + 1
        raise InputError(
            f'column "{column.name}" in row {row}: the sampling weight must be a number of at least 1; '
            "name another column in --sampling-weight, or leave the row out.",
            column=column.name,
            row=row,
            option="--sampling-weight",
        )
    return values[column.codes]


def _measure(
    problem: ProfileProblem,
    name: str,
    columns: tuple[str, ...],
    places: list[int],
    weights: Floats,
    hashes: RecordHash,
    largest: int,
    run: Run,
) -> ScenarioRisk:
    from louver.optim.superpopulation import (
        individual_risk,
        match_risk,
    )  # SciPy, which most profiles do not need

    numbers = hashes.of(*places)
    _, combination, frequencies = np.unique(numbers, return_inverse=True, return_counts=True)
    frequencies = frequencies.astype(np.int64)
    risk = individual_risk(frequencies, np.bincount(combination, weights=weights).astype(np.float64))[
        combination
    ]
    people = float(weights.sum())
    fraction = problem.n_rows / people
    sizes, counts = np.unique(frequencies, return_counts=True)
    suda, minimal, contributions = _suda(places, frequencies[combination] == 1, hashes, largest, run)
    household = _household_risk(risk, problem.units())
    return ScenarioRisk(
        name=name,
        columns=columns,
        people=people,
        fraction=fraction,
        unique_records=int((frequencies == 1).sum()),
        prosecutor_highest=float(1 / frequencies.min()),
        journalist_highest=float(risk.max()),
        marketer=float(risk.mean()),
        expected_matches=float(risk.sum()),
        at_or_above=tuple((level, int((risk >= level).sum())) for level in LEVELS),
        household_highest=None if household is None else float(household[0].max()),
        expected_households=None if household is None else float(household[0].sum()),
        unique_people=_unique_people(sizes.astype(np.int64), counts.astype(np.int64), people, fraction),
        match_is_right=match_risk(int((frequencies == 1).sum()), int((frequencies == 2).sum()), fraction),
        minimal_uniques=minimal,
        contributions=tuple(
            sorted(zip(columns, contributions, strict=True), key=lambda pair: (-pair[1], pair[0]))
        ),
        records=RecordRisk(
            individual=risk, household=None if household is None else household[0][household[1]], suda=suda
        ),
    )


def _unique_people(
    sizes: Ints, counts: Ints, people: float, fraction: float
) -> tuple[tuple[str, float | None], ...]:
    """Estimates by model; for a whole population, the unique records themselves."""
    if fraction >= 1:
        return (("counted", float(counts[sizes == 1].sum())),)
    from louver.optim.superpopulation import fit_negative_binomial, fit_pitman

    pitman = fit_pitman(sizes, counts)
    binomial = fit_negative_binomial(sizes, counts, fraction)
    return (
        ("Pitman", None if pitman is None else pitman.unique_people(round(people))),
        ("negative binomial", None if binomial is None else binomial.unique_people()),
    )


def _household_risk(risk: Floats, units: Ints | None) -> tuple[Floats, Ints] | None:
    """Chance that one of its people is linked, for each household, and the household of each record."""
    if units is None:
        return None
    _, unit = np.unique(units, return_inverse=True)
    with np.errstate(divide="ignore"):
        none_linked = np.bincount(unit, weights=np.log1p(-risk))
    return -np.expm1(none_linked), unit.astype(np.int64)


def _suda(
    places: list[int],
    is_unique: np.ndarray,
    hashes: RecordHash,
    largest: int,
    run: Run,
) -> tuple[Floats, tuple[int, ...], list[float]]:
    """SUDA2 scores of records, records by the size of their smallest minimal unique, and the share of each column.

    Notes
    -----
    **Implements** Elliot, Manning & Ford (2002): a set of columns is a minimal sample unique of a record if its values there occur
    once, and its values in no proper subset do. One of k columns scores prod_{i=k}^{M} (A - i), for A columns in the scenario and sets of
    at most M columns; a record's score is the sum over its sets.
    **Cost**: a sort of the records for each set of at most M columns.
    """
    n_columns, most = len(places), min(largest, len(places))
    candidates = np.flatnonzero(is_unique)  # unique in a subset of the columns means unique in all of them
    score: Floats = np.zeros(len(is_unique))
    by_column = np.zeros(n_columns)
    smallest = np.full(len(candidates), most + 1)
    found: dict[tuple[int, ...], np.ndarray] = {}
    for size in range(1, most + 1):
        points = float(np.prod([max(n_columns - i, 1) for i in range(size, most + 1)]))
        for chosen in combinations(range(n_columns), size):
            run.check()
            parts = [found[part] for part in combinations(chosen, size - 1)] if size > 1 else []
            is_covered = np.any(parts, axis=0) if parts else np.zeros(len(candidates), dtype=bool)
            alone = _is_alone(hashes.of(*(places[i] for i in chosen)), candidates)
            is_minimal = alone & ~is_covered
            found[chosen] = alone | is_covered
            score[candidates[is_minimal]] += points
            by_column[list(chosen)] += points * is_minimal.sum()
            smallest[is_minimal] = np.minimum(smallest[is_minimal], size)
    total = score.sum()
    shares = (by_column / total).tolist() if total else [0.0] * n_columns
    return score, tuple(int((smallest == size).sum()) for size in range(1, most + 1)), shares


def _is_alone(numbers: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Whether each candidate's number occurs once among all records."""
    ordered = np.sort(numbers)
    wanted = numbers[candidates]
    alone: np.ndarray = np.searchsorted(ordered, wanted, "right") - np.searchsorted(ordered, wanted) == 1
    return alone
