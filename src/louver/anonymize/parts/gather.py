"""From the classes of parts to one release: what they publish together, what they lose, and what is promised of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from louver._arrays import Ints
from louver.anonymize.comparison import compare
from louver.anonymize.generalise import Meaning, Published, Sort, mapping_table
from louver.anonymize.load import shown_codes
from louver.anonymize.metrics import Reached, published_classes, published_losses, risk_of, utility_of
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.parts.domain import Domain
from louver.anonymize.parts.part import PartAnswer, Piece, bins_of_domain
from louver.anonymize.parts.spill import Arranging, Spill, Texts
from louver.anonymize.publish import Shown, parameters_of, promises_of, shuffled
from louver.anonymize.requirements import Guarantee
from louver.anonymize.result import AnonymizedRelease, StoredRecords
from louver.anonymize.roles import dictionary, unchanged
from louver.anonymize.watch import Stopped
from louver.data.read import open_source, quoted
from louver.optim.status import Status
from louver.run import Run
from louver.schema.attribute import Attribute

__all__ = ["gather"]

RECORDS = "records.parquet"


def gather(
    pieces: Sequence[Piece],
    answers: Sequence[PartAnswer],
    domain: Domain,
    spill: Spill,
    columns: Sequence[str],
    is_text: bool,
    options: AnonymizeOptions,
    run: Run,
) -> AnonymizedRelease:
    """The release that the classes of all parts make; its records are in a file of the spill.

    Parameters
    ----------
    columns : sequence of str
        Of the source, in its order.
    is_text : bool
        Whether the source knows no types.
    """
    published = [_together(answers, place, domain) for place in range(len(domain.attributes))]
    sizes = np.concatenate([answer.sizes for answer in answers])
    seen = published_classes(published, sizes, as_bounds=options.format == "bounds")
    n_suppressed = sum(answer.n_suppressed for answer in answers)
    mapping = mapping_table(published, sizes)
    losses = published_losses(mapping)
    carried = unchanged(columns, options)
    arranging = Arranging(
        spill=spill,
        parts=[piece.parts for piece in pieces],
        offsets=np.cumsum([0, *(len(answer.sizes) for answer in answers)])[:-1].tolist(),
        published=published,
        columns=columns,
        unchanged=carried,
        is_text=is_text,
        as_bounds=options.format == "bounds",
        n_records=domain.n_records,
        is_order_kept=options.keep_order,
        class_ids=shuffled(seen.n)[seen.of_group] if options.class_id else None,
    )
    table = StoredRecords(spill.folder / RECORDS)
    texts = arranging.write(table.path, {s.name: s.codes for s in domain.sensitive}, run)
    quasi = tuple(name for p in published for name in p.column_names(options.format == "bounds"))
    risk = risk_of(seen.sizes, np.ones(sum(answer.n_unique for answer in answers), np.int64))
    is_one = len(answers) == 1
    return AnonymizedRelease(
        table=table,
        mapping=mapping,
        published_losses=losses,
        dictionary=dictionary(columns, domain.attributes, domain.columns, table.schema, options),
        worked_out=(),
        classes=None,
        guarantee=Guarantee.K_ANONYMITY,
        method=answers[0].method,
        k=options.k,
        quasi=quasi,
        status=answers[0].status if is_one else Status.FEASIBLE,
        n_classes=seen.n,
        n_suppressed=n_suppressed,
        lower_bound=answers[0].bound if is_one else None,
        risk=risk,
        utility=utility_of(
            list(options.quasi),
            np.array([column.weight for column in domain.columns]),
            np.sum([answer.lost for answer in answers], axis=0),
            seen.sizes,
            n_suppressed,
            options.k,
        ),
        comparison=compare(bins_of_domain(domain), reduce(add, [answer.tally for answer in answers])),
        promises=promises_of(table.num_rows, quasi, losses, _shown(answers, domain, texts), options),
        parameters=parameters_of(options, domain.missing_code),
        is_order_kept=options.keep_order,
        reached=_reached(answers),
        n_alone=_count_alone(table, run) if carried else risk.uniques_after,
        subproblem_sizes=tuple(size for answer in answers for size in answer.subproblem_sizes),
        stopped=_stopped(answers),
        part_sizes=tuple(piece.n_records for piece in pieces),
    )


def _together(answers: Sequence[PartAnswer], place: int, domain: Domain) -> Published:
    """What the classes of all parts publish of one column, part after part."""
    attribute = domain.attributes[place]
    known = domain.public[attribute.name] | _named(attribute, answers)
    number: dict[Meaning, int] = {}
    of_group = []
    for answer in answers:
        found = answer.published[place]
        own = [number.setdefault(_as_known(m, known), len(number)) for m in found.meanings]
        of_group.append(np.array(own, np.int64)[found.of_group])
    first = answers[0].published[place]
    return replace(first, meanings=tuple(number), of_group=np.concatenate(of_group))


def _named(attribute: Attribute, answers: Sequence[PartAnswer]) -> frozenset[str]:
    """Labels of a column that published records have."""
    codes: set[int] = set()
    for answer in answers:
        codes |= set(answer.labels.get(attribute.name, np.zeros(0, np.int64)).tolist())
    return frozenset(attribute.labels[code] for code in codes)


def _as_known(meaning: Meaning, known: frozenset[str]) -> Meaning:
    """An interval of labels without those that only records left out have."""
    if meaning.sort is not Sort.INTERVAL or meaning.members is None:
        return meaning
    return replace(meaning, members=tuple(label for label in meaning.members if label in known))


def _shown(answers: Sequence[PartAnswer], domain: Domain, texts: dict[str, Texts]) -> list[Shown]:
    return [
        Shown(
            limits=limits,
            codes=shown_codes(_all_labels(attribute.name, answers)),
            texts=texts[attribute.name],
        )
        for attribute, limits in zip(domain.sensitive_attributes, domain.sensitive, strict=True)
    ]


def _all_labels(name: str, answers: Sequence[PartAnswer]) -> Ints:
    return np.unique(np.concatenate([answer.labels[name] for answer in answers]))


def _reached(answers: Sequence[PartAnswer]) -> tuple[Reached, ...]:
    """The least that the parts reach."""
    return tuple(
        min(lines, key=lambda line: line.l or 0.0)
        for lines in zip(*(answer.reached for answer in answers if answer.reached), strict=True)
    )


def _stopped(answers: Sequence[PartAnswer]) -> Stopped | None:
    """Where a limit ended the search of some part, the worst of all."""
    found = {answer.stopped for answer in answers}
    return next((one for one in (Stopped.UNFINISHED, Stopped.IMPROVING) if one in found), None)


def _count_alone(table: StoredRecords, run: Run) -> int:
    """Published records that no other equals in every column."""
    with open_source(table.path, decimal_mark=".", run=run) as source:
        names = ", ".join(map(quoted, source.columns))
        found = source.first_row(
            f"SELECT count(*) AS n FROM (SELECT count(*) AS n FROM records GROUP BY {names} HAVING count(*) = 1)"
        )
    assert found is not None
    return int(found["n"])
