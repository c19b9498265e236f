"""Write `cli.md`, `json.md` and `spec.md`: the reference of the command line, of the keys in its JSON, and of specs.

`make docs` runs this; a test fails where the files say something else than the program does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
from typer.main import get_command

from louver.anonymize import anonymize
from louver.anonymize.options import AnonymizeOptions
from louver.audit import audit
from louver.audit.options import AuditOptions
from louver.bounds import BoundsAnswer, bounds, compare, suggest
from louver.bounds.answer import TablePublication
from louver.bounds.options import BoundsOptions
from louver.cli.app import app
from louver.groups import groups
from louver.groups.options import GroupsOptions
from louver.profile import profile
from louver.profile.options import ProfileOptions
from louver.protect import protect
from louver.protect.options import ProtectOptions
from louver.schema.options import described
from louver.schema.source import SourceOptions
from louver.schema.spec import AttributeOptions
from louver.schema.validate import Options
from louver.topdown import Area, KnowledgeCheck, PlanForecast, TopDownRelease, area, check, plan, topdown
from louver.topdown.extension.options import ExtendOptions
from louver.topdown.extension.repair import Edits
from louver.topdown.options import TopDownOptions

FOLDER = Path(__file__).parent
NOTE = "<!-- Written by docs/generate.py (`make docs`); edit the program, not this file. -->\n"

SECTIONS: dict[str, type[Options]] = {
    "profile": ProfileOptions,
    "bounds": BoundsOptions,
    "audit": AuditOptions,
    "protect": ProtectOptions,
    "anonymize": AnonymizeOptions,
    "groups": GroupsOptions,
    "topdown": TopDownOptions,
}

MEANINGS = {
    "verdict": "what the result means for publication; every other output says the same",
    "level": "`ok`, `care` (read the reasons first) or `stop` (do not publish it as it is)",
    "sentence": "the conclusion, in one sentence",
    "reasons": "the reasons for the conclusion, one sentence each",
    "summary": "what the whole table discloses",
    "rows": "rows of the published table, including rows without anybody",
    "cols": "columns of the published table",
    "n": "sample size",
    "reduced_total": "R, the sum of all reduced counts; null if conditionals are rounded",
    "zero_rows": "rows without anybody",
    "unit_rows": "rows with reduced sum 1; null if conditionals are rounded",
    "disclosed_rows": "rows with people all of whose counts are determined",
    "disclosed_zero_cells": "zero cells that everybody can see, including those of rows without anybody",
    "disclosed_small_cells": "cells with 0 < count < `--small` that are determined",
    "certain_rows": "nonempty rows with at least `--certain` percent in one cell: they reveal a person's status",
    "certain_people": "people in them; for somebody else's table a lower bound",
    "small_rows": "nonempty rows of fewer than `--small` people; for somebody else's table those that certainly are",
    "small_row_people": "people in them; for somebody else's table a lower bound",
    "cells": "all cells in row order, or those of `--cells`",
    "cells[].row": "label of each row attribute",
    "cells[].col": "label of each column attribute",
    "lower": "least feasible count",
    "upper": "greatest feasible count",
    "values": (
        "all feasible counts as runs [start, stop, step]: stop inclusive, ascending, disjoint, as few runs as "
        "possible; a zero cell is [[0, 0, 1]]"
    ),
    "arrangements": "one entry per arrangement, least disclosive first",
    "name": "its name, or its attributes with a star on recoded ones",
    "arrangements[].rows": "attributes in the rows",
    "arrangements[].cols": "attributes in the columns",
    "arrangements[].summary": "as above",
    "suggestions": "redesigns that disclose nothing (`--avoid`), most information first, merges of distant categories last",
    "suggestions[].rows": "attributes in the rows",
    "suggestions[].cols": "attributes in the columns",
    "suggestions[].summary": "as above",
    "suggestions[].verdict": "verdict of that table, as above",
    "recodes": "attribute -> new label -> merged labels",
    "bits": "information of the table as first arranged",
    "suggestions[].bits": "information kept",
    "share": "information kept, as a share of that of the table as first arranged",
    "merged": "categories of the table as first arranged that were merged",
    "suggestions[].merged[].attribute": "their attribute",
    "suggestions[].merged[].name": "name of the merged category",
    "suggestions[].merged[].labels": "labels that were merged",
    "far": "whether merged categories are far apart in their order or hierarchy, or missing values are among them",
    "publication": "what the register adds",
    "publication.earlier": "tables of the same records that were published before; null if the table alone was refused",
    "publication.together": "small counts that all of them disclose together; null if the table alone was refused",
    "publication.refused": "why nothing was published, or null",
    "publication.published": "folder of the release, or null",
    "publication.verdict": "of the audit together with them; null if the table alone was refused",
    "publication.remark": "a remark if the register says nothing about these records (it is new, or about others); or null",
    "proved": "whether it is proved that nothing keeps more",
    "examined": "arrangements whose bounds were computed",
    "utility": "how information is defined, in words",
}

VERDICT_MEANINGS = {
    "verdict": MEANINGS["verdict"],
    **{f"verdict.{key}": MEANINGS[key] for key in ("level", "sentence", "reasons")},
}

PROFILE_MEANINGS = {
    **VERDICT_MEANINGS,
    "source": "name of the file or table",
    "n_rows": "records",
    "columns": "one entry per column",
    "columns[].name": "its name",
    "columns[].kind": "id, category, ordered code, integer, number, date, text or empty: guessed",
    "columns[].kind_reason": "why",
    "columns[].distinct": "different values, without missing ones",
    "columns[].missing": "records without a value",
    "columns[].alone": "records whose value nobody else has",
    "columns[].share_alone": "the same as a share of all records",
    "columns[].role": "identifying, quasi, sensitive, weight, unit or keep: suggested",
    "columns[].reason": "why",
    "columns[].distribution": "how the values are spread, or null for ids, free text and empty columns",
    "columns[].distribution.labels": "values, classes of numbers or years",
    "columns[].distribution.counts": "records of each",
    "sets": "the smallest sets of columns that single people out, at most thirty of each size",
    "sets[].columns": "their names",
    "sets[].n_alone": "records whose combination of values nobody else has",
    "sets[].share": "the same as a share of all records",
    "n_sets": "how many such sets there are",
    "share": "least share of records alone for a set to be listed (`--alone`)",
    "largest": "most columns of a set that was examined",
    "is_complete": "whether all sets that could have that share were tried",
    "unit": "the column that numbers households, whose records count as one; or null",
    "scenarios": "the risk from each set of columns that somebody may know (`--scenario`)",
    "scenarios[].name": "its name",
    "scenarios[].columns": "what is known",
    "scenarios[].people": "people of the population: the sum of sampling weights, `--population-size`, or the records",
    "scenarios[].fraction": "records per person of the population",
    "scenarios[].unique_records": "records whose combination of values no other record has",
    "scenarios[].prosecutor_highest": "highest risk if the attacker knows that the person is in the file",
    "scenarios[].journalist_highest": "highest risk if the attacker does not know that",
    "scenarios[].marketer": "average risk",
    "scenarios[].expected_matches": "sum of the risks of all records",
    "scenarios[].at_or_above": "how many records have a high risk",
    "scenarios[].at_or_above[].risk": "the risk",
    "scenarios[].at_or_above[].records": "records with at least that risk",
    "scenarios[].household_highest": "highest risk that somebody of a household is found, or null",
    "scenarios[].expected_households": "sum of those risks, or null",
    "scenarios[].unique_people": "expected number of people who are alone in the population with their combination",
    "scenarios[].unique_people[].model": "Pitman, negative binomial, or counted",
    "scenarios[].unique_people[].people": "how many, or null if the sample does not fit the model",
    "scenarios[].match_is_right": "chance that a match is right if a person matches one record, or null",
    "scenarios[].minimal_uniques": "records singled out by one column, by two and no fewer, and so on",
    "scenarios[].contributions": "share of the SUDA2 score of all records that involves each column",
    "scenarios[].contributions[].column": "its name",
    "scenarios[].contributions[].share": "the share",
    "dependencies": "columns that determine others",
    "dependencies[].determinant": "the column that determines the other",
    "dependencies[].dependent": "the column that is determined",
    "dependencies[].share": "records with the commonest value for their determinant, as a share of those that have both",
    "dependencies[].accuracy": "the same without the first record of each value, which no other record determines",
    "dependencies[].is_exact": "whether there is no exception",
    "seconds": "wall-clock time",
}

ANONYMIZE_MEANINGS = {
    "method": "the method that found the classes",
    "guarantee": "k-anonymity, k-map, k-units (different households), or freeform, which is weaker",
    "k": "least number of records in a class; with k-map, of people of the population who match it",
    "records": "records published",
    "classes": "classes of equal quasi-identifiers",
    "smallest_class": "records in the smallest class",
    "exceptions": "records in classes that are exceptions to one recoding for the whole file",
    "suppressed": "records left out",
    "columns": "every column of the source",
    "columns[].name": "its name",
    "columns[].role": "quasi, identifying, sensitive, keep, unit or weight",
    "columns[].kind": "how it was read; empty if it is dropped",
    "columns[].done": "what was done with it",
    "worked_out": "what columns published unchanged reveal about each quasi-identifier; stays inside",
    "worked_out[].name": "the quasi-identifier",
    "worked_out[].generalised": "published records whose value is generalised",
    "worked_out[].exactly": "of these, how many follow from an unchanged column, or from all together, without exception",
    "worked_out[].nearly": "the same with at least 95 % agreement",
    "worked_out[].column": "the unchanged column that reveals most",
    "reached": "the l and t that the classes have, for each sensitive column with a requirement",
    "reached[].name": "the sensitive column",
    "reached[].l": "fewest distinct values of a class, or the exponential of the least entropy; null if not required",
    "reached[].t": "largest distance of a class from the published table; null if not required",
    "reached[].distance": "equal, ordered or hierarchical",
    "alone": "published records that differ from all others, including the columns published unchanged",
    "alike": "for each sensitive column, the published records in classes whose members all have one value of it",
    "households": "units in the classes by a column that looks like a household number and is not named in `--unit`, or null",
    "verdict": "what the steward should read before publishing",
    "verdict.level": "ok, care or stop: the most serious of the reasons",
    "verdict.sentence": "the verdict in one sentence",
    "verdict.reasons": "sentences: what was found, the most serious first, and what was not checked",
    "withheld": "whether nothing was written because of `--against`",
    "stopped": "if a limit ended the search: improving, unfinished (before the method was done), or null",
    "information_loss": "sum over records and quasi-identifiers of weight x range / attribute range",
    "gcp": "mean share of detail lost, without weights",
    "lower_bound": "least loss that any partition can have, or null",
    "optimal": "whether no partition loses less",
    "seconds": "wall-clock time",
    "stages": "the same by stage: reading, first answer, bound, search, publishing",
    "risk": "remaining re-identification risk",
    "risk.prosecutor_highest": "1 / smallest class",
    "risk.prosecutor_average": "classes / records",
    "risk.marketer": "expected share of records re-identified",
    "risk.journalist_highest": "1 / fewest people of the population that a class matches, or null",
    "risk.journalist_average": "mean over records of 1 / people that their class matches, or null",
    "risk.uniques_before": "records unique in their quasi-identifiers before",
    "risk.uniques_after": "and after",
    "risk.class_sizes": "pairs of class size and number of classes, a class being all records with equal published quasi-identifiers",
    "risk.counted": "what the sizes count: records, or units with `--unit`",
    "utility": "what was lost",
    "utility.information_loss": "as above",
    "utility.gcp": "as above",
    "utility.discernibility": "sum of squared class sizes, and all records for each suppressed one",
    "utility.average_class_size": "records per class, over k",
    "utility.by_column": "pairs of quasi-identifier and mean share lost",
    "parts": "parts into which the file was cut (`--parts`), or null",
    "largest_part": "records of the largest of them",
    "subproblems": "Split & Carry: `number`, `largest` and `mean` size of the sub-problems, or null",
    "distributions": "shares of the records before and after, for each quasi-identifier; stays inside",
    "distributions[].name": "quasi-identifier",
    "distributions[].bins": "categories, or the lower ends of equal steps",
    "distributions[].before": "shares in the source",
    "distributions[].after": "shares published, a generalised value spread evenly over what it stands for",
    "distributions[].distance": "total variation distance between the two",
    "associations": "Cramer's V of every pair of quasi-identifiers; stays inside",
    "associations[].first": "quasi-identifier",
    "associations[].second": "quasi-identifier",
    "associations[].before": "in the source",
    "associations[].after": "as published",
    "against": "what this release and earlier ones disclose together, or null; stays inside",
    "analyses": "with `--analysis`: `terms` (each estimate before and after with 95 % intervals, `overlap`, `survives`), `not_estimated` and "
    "`propensity` (how well published and original records can be distinguished; 1 is chance); or null",
    "curve": "with `--curve`: `method`, `k`, `gcp`, `highest_risk`, `average_risk`, `seconds` of every point",
    "beside": "with `--recoding global`: `information_loss`, `gcp`, `classes`, `suppressed` of local recoding; otherwise null",
}

CHECK_MEANINGS = {
    "is_consistent": "whether invariants and bounds can all hold",
    "clash": "statements that contradict each other, with level and region; leaving out any one resolves it",
    "kind": "what is derived: nested or two-by-two (complete), or crossing (necessary conditions only)",
    "outside": "statements that prevent it from being complete",
    "crossing": "why, in words: the two statements that cross",
    "types": "parts into which the statements divide the cells",
    "constrained": "for each level how many regions are bound",
    "implied": "what the statements imply for the root, in words",
    "violation": "why the given table cannot be divided among the leaves, or null",
    "passed": "whether the spec passed all checks",
}

PLAN_MEANINGS = {
    "stand_in": "what releases were simulated on",
    "simulations": "simulated releases of each plan",
    "plans": "plan -> its `estimator` and `shares`: `written` (the spec's; `default` if it has none), `chosen` (for the workload) and `equal`",
    "lines": "one entry per plan, level and query",
    "lines[].plan": "the plan",
    "lines[].level": "the level",
    "lines[].query": "the query; the total is always included",
    "lines[].share": "its share of the whole budget, an exact fraction; null if it is not measured",
    "lines[].people": "mean count of a row in the stand-in",
    "lines[].mean_absolute": "mean absolute error of a row in a region",
    "lines[].standard_error": "root of the mean squared error",
    "lines[].relative": "`mean_absolute` over `people`",
    "lines[].method": "`closed form` or `simulated`",
    "headline": "name of the plan that the printed sentences describe: `chosen` with `--write`, otherwise the spec's own",
    "notes": "sentences about targets, strategies and files written",
}

TOPDOWN_MEANINGS = {
    **VERDICT_MEANINGS,
    "epsilon": "loss in pure epsilon; null if the budget is in rho",
    "rho": "loss in rho; null if the budget is in epsilon",
    "neighbours": "the neighbour relation of the loss, among tables that share the invariants",
    "debited": "what the ledger debited, in its own measure and neighbour relation; null for seeded noise",
    "people": "rows of the microdata",
    "levels": "one entry per level, the root first",
    "levels[].name": "its name",
    "levels[].regions": "its regions",
    "levels[].share": "its share of the budget",
    "levels[].largest_residual": "largest number of people by which real counts missed a constraint, before rounding",
    "levels[].queries": "what was measured there",
    "levels[].queries[].name": "the query",
    "levels[].queries[].loss": "its loss, an exact fraction",
    "levels[].queries[].variance": "variance of its noise",
    "levels[].mean_absolute_error": "with `--evaluate`: query -> mean absolute error",
    "failsafe_regions": "regions whose children do not add up to them",
    "suboptimal_regions": "regions whose least squares were accepted without proof of optimality",
    "intervals": "number of simulations for standard errors and intervals; 0 for none",
    "seconds": "wall-clock time",
    "stages": "the same by stage",
    "manifest": "path of the manifest, or null",
}

LABELLED = (
    "].row",
    "].col",
    "].cell",
    "].cells",
    ".recodes",
    "mean_absolute_error",
    "constrained",
    "stages",
    "plans",
)
"""Objects whose keys are labels of the data, levels or queries."""

GROUPS_MEANINGS = {
    **VERDICT_MEANINGS,
    "mechanism": "its name, as in `--mechanism`",
    "epsilon": "the whole loss in pure epsilon, or null",
    "rho": "the whole loss in rho, which the ledger pays, or null",
    "delta": "delta that belongs to epsilon, for this release alone; otherwise null",
    "neighbours": "the neighbour relation of the loss",
    "debited": "what the ledger debited, in its own measure and neighbour relation; null for seeded noise",
    "levels": "one entry per level, `total` first",
    "levels[].name": "its name",
    "levels[].regions": "its number of regions",
    "levels[].share": "its share of the budget",
    "levels[].measured_l1": "forecast L1 error of the measurements as they are drawn",
    "levels[].forecast_l1": "forecast L1 error after post-processing: groups counted under a wrong size",
    "levels[].forecast_emd": "forecast earth mover's distance: the same for groups of at most each size",
    "levels[].l1_error": "with `--evaluate`: the true L1 error",
    "levels[].emd": "with `--evaluate`: the true earth mover's distance",
    "levels[].suffix_emd": "with `--evaluate`: the same for groups of at least each size",
    "total_groups": "released number of groups",
    "seconds": "wall-clock time",
}

KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    list: "list",
    tuple: "list",
    type(None): "number or null",
    dict: "object",
}
OR_NULL = {
    "violation": "object or null",
    "stopped": "text or null",
    "households": "object or null",
    "question.household": "text or null",
    "question.near_small": "whole number or null",
}
"""Kinds of keys that are null in the example."""


AUDIT_MEANINGS = {
    "verdict": "what the result means for publication; every other output says the same",
    "verdict.level": "`ok` (everything was checked and nothing is disclosed), `care` (something is open or was not checked) or `stop`",
    "verdict.sentence": "whether to publish",
    "verdict.reasons": "the reasons, one sentence each, and what was not checked",
    "question": "what was checked, and how completely",
    "question.cells": "cells of tables and targets",
    "question.groups": "groups of fewer than `--small` people; null if only targets were checked",
    "question.attributes": "attributes that describe groups",
    "question.most": "largest number of attributes in one description",
    "question.some_sets": "attributes for which not every set of labels was checked",
    "question.is_whole": "whether all descriptions were checked; if groups were found, whether all are listed",
    "question.is_late": "whether the time ended before the search did",
    "question.has_targets": "whether targets were named, and nothing else was checked",
    "question.dependencies": "pairs of columns of which the first determines the second, which everybody is assumed to know",
    "question.within": "percentage for which cells were checked; groups are checked for exact counts",
    "question.files": "earlier files of records of which only the bounds of each class were used",
    "question.ledger": "exact publications about these people that a ledger lists and the register does not have; null if there are none",
    "question.household": "a column that looks like a household number, whose members were counted individually; or null",
    "question.counts_people": "whether groups are counted by people on purpose (`--count-people`)",
    "question.unit": "the column of units by which groups are counted (`--unit`), or null if they are counted by people",
    "question.near": "pairs of columns of which the first nearly determines the second, and the share of records that follow the rule",
    "question.near_small": "small counts that readers can derive who assume that these pairs are rules; null if undecided",
    "question.asked": "what was checked, in sentences",
    "question.not_asked": "what was not checked, in sentences",
    "summary": "counts of cells",
    "summary.targets": "cells audited",
    "summary.exact": "cells with people whose count follows from the tables",
    "summary.small_exact": "of these, with 0 < count < `--small`; cells of the same people count once",
    "summary.within": "cells known to within `--within` percent, but not exactly",
    "summary.zero": "cells that are certainly empty",
    "summary.certified": "cells whose two bounds are proved and attained",
    "summary.undecided": "cells and groups for which it is undecided whether they are disclosed",
    "summary.groups": "groups of fewer than `--small` people that were checked; null if only targets were",
    "cells[].where": "labels that the filter of its table accepts, for attributes that are not in `cell`",
    "summary.seconds": "run time",
    "cells": "every cell of the tables and targets, and every group that is disclosed or open",
    "cells[].table": "the table or target of the cell, or `groups`",
    "cells[].cell": "its label of each attribute",
    "cells[].lower": "proved lower bound",
    "cells[].upper": "proved upper bound; null if nothing bounds it",
    "cells[].certified": "whether tables that agree with everything published attain both bounds",
    "cells[].status": "`exact`, `zero`, `within`, `small` (certainly below `--small`), `certain` (certainly somebody) or `open`",
    "cells[].units": "number of units of its people, with `--unit`; otherwise null",
    "cells[].because": "names of a smallest set of tables that discloses the cell; null if it is not disclosed",
    "advice": "what to change so that no small cell is exact; null if nothing needs to change or nothing was found",
    "advice.leave_out": "tables to leave out",
    "advice.coarsen": "tables to publish in a coarser form, and how",
    "advice.coarsen[].table": "its name",
    "advice.coarsen[].how": "what to change",
    "advice.safe": "whether the audit of the remaining tables finds no small cell exact",
    "advice.least": "whether fewer tables are not enough",
    "hide": "with `--hide`: one entry for every table with hidden small cells",
    "hide[].table": "its name",
    "hide[].cells": "further cells to hide, by their labels; a total leaves attributes out",
    "hide[].small_cells": "cells that are hidden because they are small",
    "hide[].by_mark": "small cells that are protected only while readers cannot distinguish small cells from other hidden ones",
    "hide[].safe": "whether no small cell can then be derived",
    "hide[].possible": "false if it is proved that no choice of cells protects all small ones",
    "hide[].least": "whether fewer further cells are not enough, in all tables together",
    "earlier": "tables that were published before according to `--register`; they are audited too",
    "published": "folder to which `--publish` wrote the tables, or null",
    "remark": "a remark if the register says nothing about these records (it is new, or about others); or null",
}

PROTECT_MEANINGS = {
    **VERDICT_MEANINGS,
    "question": "what was asked",
    "question.primary": "cells that must be protected",
    "question.earlier": "publications about the same people that were checked together with the tables; null without a register",
    "question.apart": "a remark if the register says nothing about these people, or if some of its publications were not used",
    "question.is_apart_by_word": "whether only `--new-population` states that earlier publications are about other people",
    "question.ledger": "exact publications about these people that a ledger lists and the register does not have; null if there are none",
    "question.n_counts": "primary cells that are counts, for which no contributor is checked",
    "question.shown_before": "variables whose numbers an earlier file of records shows for every person",
    "refusal": "what the tables disclose together with what was published before; null if nothing",
    "question.is_noisy": "true if readers who average the noise of cell keys were considered",
    "cell_keys": "what cell keys did to the counts; null for other methods",
    "cell_keys.variance": "variance of the noise",
    "cell_keys.maximum": "largest noise",
    "cell_keys.limit": "counts from 1 to below this are small",
    "cell_keys.cells": "cells that are not empty, each counted once",
    "cell_keys.small": "cells whose true count is small",
    "cell_keys.changed": "cells whose published number is not the true count",
    "cell_keys.mean_change": "mean distance from the true counts",
    "cell_keys.estimates": "mean precision of the average of all estimates of a small count, relative to that of one number",
    "cell_keys.forecast": "share of small counts that the rounded average is expected to hit",
    "cell_keys.measured": "share of small counts that it hits",
    "cell_keys.certain": "small counts of which readers can be certain by averaging, or by reasoning with bounds and sums",
    "cell_keys.told": "small counts that follow from bounds and sums",
    "question.attackers": "contributors who know their own part, against whom cells are protected in addition to the outsider",
    "question.known_percent": "how well the outsider knows every number beforehand, in percent; null if only that it is not negative",
    "question.unknown_pairs": "cells with two contributors whose parts are not known, so that neither was checked",
    "question.asks_contributors": "whether contributors were checked at all",
    "question.linked": "pairs of attributes of which the first determines the second in the records, so that their tables were linked",
    "question.dependent": "the same for pairs that were not linked: a table uses both columns, or another finer column is linked",
    "question.near": "the same for pairs that a few records contradict; nothing is linked by these",
    "question.is_circle": "whether tables are linked in a circle, so that readers could also reason about the crossed table behind them",
    "question.waived": "cells that are primary by a rule and published by decision",
    "question.asked": "the same in sentences",
    "question.files": "what earlier files of records may reveal about counts besides what was examined, in sentences",
    "question.not_asked": "what was not checked, in sentences",
    "summary": "figures of all tables; a cell that several tables show counts once",
    "summary.cells": "cells of the tables",
    "summary.primary": "cells that are primary by the rules",
    "summary.secondary": "further hidden cells",
    "summary.cost": "what they cost: their number, their value or their costs; for rounded tables the total distance, in bases",
    "summary.bound": "lower bound: no protecting pattern costs less; no table that adds up has a smaller distance",
    "summary.gap": "largest share of the cost that a better pattern could save",
    "summary.optimal": "whether it is proved that no pattern is cheaper",
    "summary.attackers": "attackers who were checked, including the outsider",
    "summary.demands": "ranges that must stay possible, one for each primary cell, attacker and side",
    "summary.certified": "demands with a witness table that was checked in whole numbers",
    "summary.unprotected": "primary cells that are not shown to be protected",
    "summary.rounds": "rounds of the search",
    "summary.seconds": "run time in seconds",
    "tables": "one entry for each table",
    "tables[].table": "its name",
    "tables[].cells": "its cells",
    "tables[].primary": "primary cells",
    "tables[].secondary": "further hidden cells",
    "tables[].hidden_share": "hidden share of the sum of its finest cells",
    "cells": "every hidden cell of every table, without its number",
    "cells[].table": "its table",
    "cells[].cell": "its codes",
    "cells[].kind": "`primary` or `secondary`",
    "cells[].reasons": "why it is primary",
    "cells[].protected": "false for a primary cell that is not shown to be protected",
    "method": "`hide` or `round`",
    "rounding": "what rounding did to the numbers; null if cells were hidden",
    "rounding.bases": "variable -> its base",
    "rounding.changed": "numbers that differ from the true ones",
    "rounding.beyond": "how many multiples beyond the two neighbouring ones the furthest number went; 0 if none did",
    "rounding.far": "numbers that are not a neighbouring multiple",
    "rounding.mean_change": "variable -> mean distance from the true numbers",
    "published": "folder to which `--out` wrote the tables, or null",
}

OTHER_MEANINGS = {
    "profile": PROFILE_MEANINGS,
    "audit": AUDIT_MEANINGS,
    "protect": PROTECT_MEANINGS,
    "anonymize": ANONYMIZE_MEANINGS,
    "louver groups": GROUPS_MEANINGS,
    "topdown check": CHECK_MEANINGS,
    "topdown area": {
        "leaves": "how many leaves the area has",
        "total": "people of the area",
        "total.count": "released number of people",
        "total.standard_error": "root of the expected squared error",
        "total.rating": "how good the single number is: `very good`, `usable`, `rough` or `too noisy alone`",
        "total.lower_90": "lower end of the 90 % interval",
        "total.upper_90": "upper end of it",
        "counts": "one for each row of every query; zeros are left out if a query has more than 100 rows",
        "counts[].query": "name of the query",
        "counts[].labels": "attribute -> label of the row",
        "counts[].labels.sex": "for example",
        "counts[].count": "released people in it",
        "counts[].standard_error": "as above",
        "counts[].rating": "as above",
        "counts[].lower_90": "as above",
        "counts[].upper_90": "as above",
    },
    "topdown plan": PLAN_MEANINGS,
    "topdown extend": {
        "extends": "digest of the first release's manifest",
        "edits": "what the last edit did",
        "edits.broken_before": "leaves that broke each bound, rule and gap before the last edit",
        "edits.broken_after": "the same after it; no bound is among them",
        "edits.leaves": "leaves in which somebody was changed",
        "edits.people": "people changed",
    },
    "topdown run": TOPDOWN_MEANINGS,
}

SPEC_MEANINGS = {
    "source.file": "the file with the records, relative to the spec",
    "source.uri": "address of a PostgreSQL database, instead of a file; the password comes from the environment",
    "source.wide": 'columns that are cells: `{ "<25, f" = { age = "<25", sex = "f" } }`, one entry for each column',
    "attributes.kind": "`category` (default), `ordered` (labels in their order), `integer`, `number` or `date` (days, under months, quarters, years and decades)",
    "attributes.labels": "all its labels; a value outside them is refused with its row",
    "attributes.missing": "`error` (default), or the label that a missing value gets",
    "attributes.hierarchy": "a CSV file from labels to groups, `{ prefixes = [2, 5] }` of a code, or `{ columns = [...] }`",
    "attributes.bins": "cut points of a number: `[25, 55]` gives below 25, 25 to below 55, and 55 or more",
    "attributes.merge": "new label -> labels that it replaces",
    "attributes.level": "level of the hierarchy to read it at, 0 the most general",
    "audit.tables": "what is published; [every key](audit.md)",
    "audit.known": "what outsiders know already",
    "audit.targets": "further crosses whose cells are checked",
    "protect.tables": "what is published; [every key](protect.md)",
    "protect.codes": "attribute -> its `hierarchy` (an `.hrc` or CSV file, or several), the code of its `total`, and what its codes are codes `of`",
    "protect.rules": "which cells are primary: `frequency`, `p-percent`, `p-q`, `dominance`, `request` or `zero`, with their numbers and `range`",
    "protect.status": "decisions about single cells: `table`, `cell`, `set` and `reason`",
    "topdown.geography": "the tree of regions; if left out, one region `all` with everybody",
    "topdown.geography.levels": "names of the levels, the root first",
    "topdown.geography.leaves": "public file with one row for each leaf",
    "topdown.geography.column": "column with a code whose prefixes are the regions above",
    "topdown.geography.prefixes": "how many characters of the code name a region of each level",
    "topdown.geography.columns": "instead of a code, one column for each level",
    "topdown.spine": "regions arranged for areas that matter; if left out, the geography ([how](howto/areas-that-matter.md))",
    "topdown.spine.areas": "public file with the columns `leaf` and `area`, optionally `kind`; a region may represent its leaves",
    "topdown.spine.fixed": "levels down to this one stay; the first level by default",
    "topdown.spine.levels": "names of the new levels, as many as the geography has there; by default `part 1`, `part 2` and so on",
    "topdown.spine.tolerance": "how much worse totals of a geographic level may become; 0.05 by default",
    "topdown.shares": "how the budget is divided, in exact fractions that sum to one; if left out, chosen for the workload `even`",
    "topdown.shares.levels": "level -> share",
    "topdown.shares.queries": "query -> share of its level's",
    "topdown.shares.at": "level -> another division among its queries",
    "topdown.queries": "name -> attributes of a marginal; `detailed`, all cells, is always included",
    "topdown.invariants": "counts that are published exactly: `name`, `level`, and `cells` unless everybody counts",
    "topdown.bounds": "limits from a public `file`, one row per leaf: `name`, `cells`, and `lower`, `upper` or `facilities`",
    "topdown.covariates": "public numbers, one per leaf, that go with how many people live there: `column` (of the list of leaves, or of `file`), `cells`",
    "topdown.epsilon": "the budget in pure epsilon",
    "topdown.rho": "the budget in rho (zero-concentrated), instead of epsilon",
    "topdown.delta": "with rho, used to restate it as an epsilon; with epsilon, Gaussian noise is composed to keep both",
    "topdown.neighbours": "`change-record` (default) or `add-remove-record`",
    "topdown.acknowledge_invariants": "continue if it cannot be decided what the invariants of several specs disclose together",
    "topdown.estimator": '`"bayes"` (default), `"least-squares"` or `"plain"`: how counts are estimated; not part of what is measured',
    "topdown.extended_by": "spec of a later extension, for whose bounds and structural zeros this release makes room",
    "topdown.published": "noise that somebody else drew and published; written by `import-nmf`, without budget and shares",
    "topdown.published.by": "who published it",
    "topdown.published.files": "how many files were read",
    "topdown.published.sha256": "hash of the list of their hashes, `published.sha256`",
    "topdown.published.tabulation": "how many characters at the end of a leaf's code name it in tabulation geography",
    "topdown.published.variances": "level -> query -> variance of most regions; levels that nobody measured are left out",
    "topdown.digest": "digest in the manifest of that release; another one is refused",
    "topdown.extends": "release directory that is extended; verified first",
    "topdown.refines": "attribute of the first release -> the finer `attribute` that replaces it, and `merge`: label -> its finer labels",
    "topdown.rules": "edit rules: in every leaf people in `cells` are at most `at_most` times those in `of`; each has a `name`",
    "topdown.household": "leaves with one `head` and `members` alone; each of `gaps` says how many `years` apart its `cells` are from the head",
    "topdown.shrink": 'for `bayes`: maximum number of standard deviations by which small groups may be shrunk, 2 by default, or `"off"`',
    "topdown.intervals": "number of simulations for standard errors and intervals, 3 by default; 0 for none",
}
"""Keys of a spec that are no options of a command."""

TOWN = """
[source]
file = "people.csv"
[attributes.sex]
labels = ["f", "m"]
[topdown]
epsilon = 1
[topdown.geography]
columns = ["town"]
levels = ["town"]
leaves = "leaves.csv"
[topdown.shares]
levels = { town = 1 }
queries = { detailed = 1 }
"""


def _town() -> tuple[KnowledgeCheck, PlanForecast, TopDownRelease, Area]:
    """Results of the smallest spec there is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "people.csv").write_text("town,sex\nA,f\n")
        (folder / "leaves.csv").write_text("town\nA\n")
        (folder / "town.toml").write_text(TOWN)
        release = topdown(folder / "town.toml", seed=1, evaluate=True, out=folder / "out")
        planned = plan(folder / "town.toml", simulations=1)
        return check(folder / "town.toml"), planned, release, area(folder / "out", leaves=["A"])


def cli_reference() -> str:
    """Every command with its arguments and options."""
    group = get_command(app)
    context = group.make_context("louver", [], resilient_parsing=True)
    parts = [NOTE, "# Command line\n", f"{group.help}\n", _options(group, context)]
    return "\n".join([*parts, *_commands(group, context)])


def _commands(group: Any, context: Any) -> Iterator[str]:
    """The commands of a group, and those below them."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        below = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield f"## `{below.command_path}`\n"
        yield f"{command.help}\n"
        if hasattr(command, "commands"):
            yield from _commands(command, below)
            continue
        usage = " ".join(below.get_usage().split()).removeprefix("Usage: ")
        yield f"```\n{usage}\n```\n"
        yield _options(command, below)
        if command.epilog:
            yield f"{command.epilog}\n"


def json_reference() -> str:
    """Every key of the JSON results, found by walking results of a small table."""
    ill = ["no", "mild", "severe"]
    people = pa.table({"site": list("AAABBB"), "ill": ill * 2, "count": [40, 20, 3, 30, 30, 2]})
    table = {"data": people, "weight": "count"}
    arranged = {"rows": ["site"], "cols": ["ill"]}
    repeated = pa.table({"county": ["A", "B", "C"] * 20, "state": ["X", "X", "Y"] * 20, "id": range(60)})
    sections = [
        (
            "`louver profile`",
            profile(
                repeated.select(["state", "county", "id"]),
                scenario={"neighbour": ["state", "county"]},
                population_size=10_000,
            ),
        ),
        ("`louver bounds`", bounds(**table, **arranged)),
        ("`louver bounds --arrangements`", compare(**table, arrangements=[arranged])),
        (
            "`louver bounds --suggest`: these keys in addition to those of `louver bounds`",
            suggest(**table, **arranged),
        ),
        (
            "`louver bounds --register`: this key in addition to those of `louver bounds`",
            BoundsAnswer(
                publication=TablePublication(earlier=1, together=0, refused=None, published="released")
            ),
        ),
    ]
    linked = [
        {"name": "all", "by": ["site", "ill"], "below": 4, "totals": True},
        {"name": "A", "by": ["ill"], "where": {"site": "A"}},
    ]
    sections.append(("`louver audit`", audit(**table, tables=linked, hide=True)))
    firms = {"name": "firms", "by": ["site", "ill"], "value": "count"}
    rules = [{"rule": "frequency", "minimum": 2}]
    sections.append(("`louver protect`", protect(people, tables=[firms], rules=rules, steps=1)))
    sections.append(("`louver anonymize`", anonymize(people, quasi=["site", "count"], k=3, method="sorted")))
    counted = {
        "size": "count",
        "groups": "count",
        "regions": ["site"],
        "max_size": 3,
        "domain_from_data": True,
    }
    sections.append(("`louver groups`", groups(people, **counted, epsilon=1, seed=1, evaluate=True)))
    checked, planned, release, some = _town()
    sections.append(("`louver topdown check`", checked))
    sections.append(("`louver topdown plan`", planned))
    sections.append(("`louver topdown run` and `estimate`", release))
    sections.append(("`louver topdown area`", some))
    sections.append(("`louver topdown extend`: these keys in addition to those of `run`", ExtendAnswer()))
    parts = [
        NOTE,
        "# JSON\n",
        "`--json` prints one object. These keys are stable: other programs may rely on them.\n",
    ]
    for title, result in sections:
        meaning = next(
            (known.__getitem__ for name, known in OTHER_MEANINGS.items() if name in title), _meaning
        )
        lines = [f"| `{path}` | {kind} | {meaning(path)} |" for path, kind in _walk(result.to_dict(), "")]
        parts.append(f"## {title}\n\n| key | value | meaning |\n|---|---|---|\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


class ExtendAnswer:
    """What an extension reports in addition to a first release."""

    def to_dict(self) -> dict[str, Any]:
        edits = Edits(broken_before={}, broken_after={}, leaves=1, people=1)
        return {"extends": "0" * 64, "edits": asdict(edits)}


def spec_reference() -> str:
    """Every key of a spec, and an example for each verb."""
    parts = [
        NOTE,
        "# Specs\n",
        "A spec keeps the options that you would otherwise repeat: `louver VERB --spec FILE.toml`, in Python `spec=`. Options of the command take",
        "precedence over the spec. Files are relative to the spec. `louver profile FILE --write-spec NEW.toml` writes a first one.",
        "An unknown key is refused, with a suggestion of the closest known one. `louver demo --files` writes the files of the examples.\n",
        '`schema = "pl94"` or `schema = "dhc-persons"` at the top uses a [ready schema](topdown-reference.md#ready-schemas).\n',
        _spec_section("`[source]`: where the records are", "source", SourceOptions),
        _spec_section("`[attributes.NAME]`: what a column means", "attributes", AttributeOptions),
        "## `[[structural_zeros]]`: cells that cannot occur\n",
        'Each maps attributes to labels: `ward = ["maternity"]`, `sex = ["male"]`.\n',
    ]
    for verb, model in SECTIONS.items():
        example = (FOLDER / "specs" / f"{verb}.toml").read_text(encoding="utf-8")
        parts += [_spec_section(f"`[{verb}]`", verb, model), f"```toml\n{example}```\n"]
    parts += [
        "## `[topdown]` of an extension: these keys in addition to those above\n",
        "| key | meaning |\n|---|---|",
    ]
    own = [name for name in ExtendOptions.model_fields if name not in TopDownOptions.model_fields]
    parts += [f"| `{name}` | {SPEC_MEANINGS[f'topdown.{name}']} |" for name in own]
    parts.append("")
    return "\n".join(parts)


def _spec_section(title: str, name: str, model: type[Options]) -> str:
    return f"## {title}\n\n| key | meaning |\n|---|---|\n" + "".join(_spec_lines(name, model))


def _spec_lines(place: str, model: type[Options]) -> Iterator[str]:
    told = {option.name: option.help for option in described(model)}
    for name, field in model.model_fields.items():
        path = f"{place}.{name}"
        key = path.partition(".")[2]
        yield f"| `{key}` | {told[name] if name in told else SPEC_MEANINGS[path]} |\n"
        for part in get_args(field.annotation) or (
            field.annotation,
        ):  # of a section that may be left out, too
            if (
                isinstance(part, type)
                and issubclass(part, Options)
                and f"{path}.{next(iter(part.model_fields))}" in SPEC_MEANINGS
            ):
                yield from _spec_lines(path, part)


def _options(command: Any, context: Any) -> str:
    lines = []
    for parameter in command.get_params(context):
        name, told = parameter.get_help_record(context)
        name = parameter.metavar if parameter.param_type_name == "argument" else name.replace("|", "\\|")
        lines.append(f"| `{name}` | {' '.join(told.split())} |\n")
    return "| option | meaning |\n|---|---|\n" + "".join(lines)


def _walk(value: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Dotted path and kind of every key; keys that are labels of the data are left out."""
    for key, below in value.items():
        here = f"{path}.{key}".removeprefix(".")
        yield here, OR_NULL.get(here) or KINDS[type(below)]
        if here.endswith(LABELLED) or (here.endswith(".summary") and path):
            continue
        if isinstance(below, dict):
            yield from _walk(below, here)
        elif isinstance(below, list) and below and isinstance(below[0], dict):
            yield from _walk(below[0], f"{here}[]")


def _meaning(path: str) -> str:
    return MEANINGS[path] if path in MEANINGS else MEANINGS[path.rpartition(".")[2]]


def main() -> None:
    (FOLDER / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (FOLDER / "json.md").write_text(json_reference(), encoding="utf-8")
    (FOLDER / "spec.md").write_text(spec_reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
