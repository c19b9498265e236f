"""What releases can promise: a registry by name, and which promises each verb must make.

Every module here recomputes its promises from the published files alone, with separate code: nothing is shared with the code that made the
release. To add a promise, write its model and its check in a module and add a line to `PROMISES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from louver.release.promises.agreement import PromisedAgreement, check_agreement
from louver.release.promises.base import Context, Outcome, Promise, Registered
from louver.release.promises.extension import (
    EditRules,
    Households,
    PromisedExtension,
    check_edit_rules,
    check_extension,
    check_households,
)
from louver.release.promises.group_table import (
    GroupCounts,
    PublishedGroups,
    check_group_counts,
    check_group_table,
)
from louver.release.promises.k_anonymity import (
    Freeform,
    KAnonymity,
    KMap,
    KUnits,
    WholeUnits,
    check_freeform,
    check_k_anonymity,
    check_k_map,
    check_k_units,
    check_whole_units,
)
from louver.release.promises.mapping import MappingPromise, check_mapping
from louver.release.promises.protected import ProtectedTablesPromise, check_protected
from louver.release.promises.recoding import Losses, OneRecoding, check_losses, check_one_recoding
from louver.release.promises.records import (
    Columns,
    CsvCopy,
    ReleasedRecords,
    check_columns,
    check_csv,
    check_records,
)
from louver.release.promises.rounded import (
    CellKeyTablesPromise,
    RoundedTablesPromise,
    check_cell_keys,
    check_rounded,
)
from louver.release.promises.sensitive import LDiversity, TCloseness, check_l_diversity, check_t_closeness
from louver.release.promises.tables import PublishedTables, check_tables
from louver.release.promises.topdown import TopDown, check_topdown

__all__ = ["PROMISES", "REQUIRED", "Context", "Outcome", "Promise", "Required"]

PROMISES: Mapping[str, Registered] = {
    "records": Registered(ReleasedRecords, check_records),
    "mapping": Registered(MappingPromise, check_mapping),
    "losses": Registered(Losses, check_losses),
    "columns": Registered(Columns, check_columns),
    "csv": Registered(CsvCopy, check_csv),
    "one-recoding": Registered(OneRecoding, check_one_recoding),
    "k-anonymity": Registered(KAnonymity, check_k_anonymity),
    "k-map": Registered(KMap, check_k_map),
    "k-units": Registered(KUnits, check_k_units),
    "whole-units": Registered(WholeUnits, check_whole_units),
    "freeform": Registered(Freeform, check_freeform),
    "l-diversity": Registered(LDiversity, check_l_diversity),
    "t-closeness": Registered(TCloseness, check_t_closeness),
    "group-table": Registered(PublishedGroups, check_group_table),
    "group-counts": Registered(GroupCounts, check_group_counts, only=frozenset({"M_H^r", "M_c^r"})),
    "agreement": Registered(PromisedAgreement, check_agreement, only=frozenset({"louver"})),
    "topdown": Registered(TopDown, check_topdown),
    "extension": Registered(PromisedExtension, check_extension),
    "edit-rules": Registered(EditRules, check_edit_rules),
    "households": Registered(Households, check_households),
    "tables": Registered(PublishedTables, check_tables),
    "protected-tables": Registered(ProtectedTablesPromise, check_protected, only=frozenset({"hide"})),
    "rounded-tables": Registered(RoundedTablesPromise, check_rounded, only=frozenset({"round"})),
    "cell-key-tables": Registered(CellKeyTablesPromise, check_cell_keys, only=frozenset({"cellkey"})),
}


@dataclass(frozen=True, slots=True)
class Required:
    """Promises of a verb: all of `always` and exactly one of `one_of`, each once; those of `may` any number of times."""

    always: frozenset[str]
    one_of: frozenset[str]
    may: frozenset[str] = frozenset()


REQUIRED: Mapping[str, Required] = {
    "anonymize": Required(
        always=frozenset({"records", "mapping", "losses"}),
        one_of=frozenset({"k-anonymity", "k-map", "k-units", "freeform"}),
        may=frozenset({"l-diversity", "t-closeness", "columns", "csv", "one-recoding", "whole-units"}),
    ),
    "groups": Required(
        always=frozenset(),
        one_of=frozenset({"group-table", "group-counts"}),
        may=frozenset({"agreement"}),
    ),
    "protect": Required(
        always=frozenset(), one_of=frozenset({"protected-tables", "rounded-tables", "cell-key-tables"})
    ),
    "audit": Required(always=frozenset(), one_of=frozenset({"tables"})),
    "topdown": Required(
        always=frozenset(),
        one_of=frozenset({"topdown"}),
        may=frozenset({"extension", "edit-rules", "households"}),
    ),
}
