"""Tables for the book and the terminal: results, paper against measured, symbols, differences.

Every table is a pandas ``Styler`` (``.data`` is the plain DataFrame), escaped, with the classes that the
book's theme styles on light and dark pages; :func:`plain` writes any of them as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from explorl import places
from explorl.errors import ConfigError
from explorl.report import paper as paper_tables
from explorl.report import records as record_files
from explorl.report import paper_rows, style, verdicts
from explorl.report.html import MATH_OFF, escape
from explorl.report.metric_names import METRICS
from explorl.report.records import MetricRow, Record

SYMBOL_COLUMNS = ("symbol", "code", "meaning", "shape", "range", "paper")
MISSING = "–"


def styled(frame: pd.DataFrame, caption: str = "", *, math_columns: Sequence[str] = ()) -> Styler:
    """A DataFrame of texts as the book's table: no index, escaped, left-aligned.

    Args:
        frame: cells are shown as ``str`` gives them; whatever they hold cannot become markup.
        caption: above the table.
        math_columns: columns that hold LaTeX, to be typeset.

    >>> "&lt;b&gt;" in styled(pd.DataFrame({"x": ["<b>"]})).to_html()
    True
    """
    typeset = "" if math_columns else f" {MATH_OFF}"
    table = frame.style.hide(axis="index").format(lambda cell: escape(str(cell)), na_rep=MISSING)
    table = table.format(lambda cell: rf"\({escape(str(cell))}\)" if cell else "", subset=list(math_columns))
    table = table.format_index(escape="html", axis=1)
    table.set_table_attributes(f'class="dataframe table{typeset}"')
    table.set_table_styles([{"selector": "th, td", "props": "text-align: left; vertical-align: top"}])
    return table.set_caption(escape(caption)) if caption else table


def plain(table: Styler | pd.DataFrame) -> str:
    """A table as text for a terminal: columns padded, no index.

    >>> print(plain(pd.DataFrame({"arm": ["SD-E²"], "ACC": ["82.0"]})))
    arm    ACC
    -----  ----
    SD-E²  82.0
    """
    frame = table.data if isinstance(table, Styler) else table
    cells = [[str(c) for c in row] for row in [frame.columns, *frame.itertuples(index=False)]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(frame.columns))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def interval_text(row: MetricRow | None, percent: bool) -> str:
    """``45.1 [41.0, 49.2]`` for a record's row, or the dash where there is none."""
    if row is None or row.value is None:
        return MISSING
    scale, digits = (100.0, 1) if percent else (1.0, 2)
    text = f"{scale * row.value:.{digits}f}"
    if row.low is None or row.high is None:
        return text
    return f"{text} [{scale * row.low:.{digits}f}, {scale * row.high:.{digits}f}]"


def _committed(chapter: str | None) -> list[Record]:
    return record_files.read_all(places.committed_results_dir(), chapter)


def results_table(chapter: str | None = None, *, records: Sequence[Record] | None = None,
                  metrics: Sequence[str] = ("acc", "s_acc", "n_strategies", "entropy_nats", "tokens")) -> Styler:
    """Every record that is kept: one row per run and arm, numbers with 95 % intervals, seeds and cost.

    Args:
        chapter: one chapter, or None for all.
        records: instead of the committed ones.
        metrics: record names of the columns, ``acc`` for the one that a chapter reports; those of :data:`METRICS` get
            their headings and units.

    Returns:
        A table; empty, but with its columns, where no run has been made.
    """
    found = _committed(chapter) if records is None else [r for r in records if chapter in (None, r.chapter)]
    rows = [_result_row(record, arm, metrics) for record in found
            for arm in dict.fromkeys(row.arm for row in record.metrics)]
    columns = ["chapter", "run", "scale", "arm", *(_heading(m) for m in metrics), "seeds", "n", "minutes",
               "date"]
    return styled(pd.DataFrame(rows, columns=columns),
                  "Records of real runs; value [95 % interval]. Minutes are the whole run's.")


def _heading(metric: str) -> str:
    name, unit = METRICS.get(metric, (metric.replace("_", " "), ""))
    return f"{name} %" if unit else name


def _result_row(record: Record, arm: str, metrics: Sequence[str]) -> list[str]:
    rows = [verdicts.find(record, arm, metric) for metric in metrics]
    cells = [interval_text(row, METRICS.get(m, ("", ""))[1] == "%") for m, row in zip(metrics, rows)]
    mine = [row for row in record.metrics if row.arm == arm]
    return [record.chapter, record.run, record.scale, style.display_name(arm), *cells,
            str(max(len(row.seeds) for row in mine)), str(max(row.n for row in mine)),
            f"{record.seconds / 60:.1f}", record.created[:10]]


def compare(chapter: str, this_run: Record | None = None, *, tables: Sequence[str] | None = None,
            metric: str = "acc", only_known: bool = False, records: Sequence[Record] | None = None,
            paper: pd.DataFrame | None = None) -> Styler:
    """The paper's numbers beside ours, with a verdict from a fixed scale.

    One row per cell of the paper's tables. "measured, full" is a run on the paper's model and data,
    "measured, toy" one in the toy world (only for tables whose data set it stands in for). A missing full run names
    the params file that makes it. The verdict is about the claim "better than …" (:func:`verdicts.reference_arm`); it
    rests on the full run if there is one, else on the toy run, else on this run.

    Args:
        chapter: such as ``sde2``.
        this_run: the run that the reader has just made.
        tables: the paper's tables, such as ``["1"]``; None for all that have this metric.
        metric: the paper's name of it: ``acc``, ``s_acc``, ``n_strategies``, ``tokens``.
        only_known: leave out cells whose number could not be recovered from the paper.
        records, paper: instead of the committed records and the paper's numbers.
    """
    numbers = paper_tables.load(chapter) if paper is None else paper
    known = _committed(chapter) if records is None else records
    cells = numbers[(numbers.metric == metric) & numbers.table.isin(verdicts.TASK_OF_TABLE.get(chapter, {}))]
    if tables is not None:
        unknown = sorted(set(tables) - set(cells.table))
        if unknown:
            raise ConfigError("tables", unknown, f"among {sorted(set(cells.table))} for metric {metric!r}")
        cells = cells[cells.table.isin(tables)]
    if only_known:
        cells = cells[cells.value.notna()]
    rows = [_compare_row(chapter, cell, numbers, known, this_run) for cell in cells.itertuples()]
    columns = ["table", "model", "arm", "paper", "measured, full", "measured, toy", "this run", "claim", "verdict"]
    frame = pd.DataFrame(rows, columns=columns)
    if frame.table.nunique() == 1:
        frame = frame.drop(columns="table")
    table = styled(frame, "Paper and measured; value [95 % interval], n test items, s seeds. † derived from printed "
                          "numbers.")
    return table.set_properties(["measured, full"], **{"overflow-wrap": "anywhere", "min-width": "8em"})


def _compare_row(chapter: str, cell, numbers: pd.DataFrame, known: Sequence[Record], this_run: Record | None
                 ) -> list[str]:
    place = (cell.table, cell.model, cell.row)
    reference = verdicts.reference_arm(numbers, *place, cell.metric, chapter)
    metric = paper_rows.in_table(chapter, cell.table, cell.metric)
    full = verdicts.full_record(known, chapter, *place, reference)
    first_model = numbers[numbers.table == cell.table].model.iloc[0] == cell.model
    toy = verdicts.toy_record(known, chapter, cell.table, cell.row, reference) if first_model else None
    mine = this_run
    if this_run is not None and this_run.scale in verdicts.FULL_SCALES:
        mine = verdicts.full_record([this_run], chapter, *place, reference)
    elif not first_model or cell.table not in verdicts.TOY_TABLES.get(chapter, ()):
        mine = None
    share = cell.metric in (*paper_tables.SHARES, "acc_avg")
    shown = [_measured(record, cell.row, metric, share) for record in (full, toy, mine)]
    if shown[0] == MISSING:
        made_by = verdicts.command(places.params_dir(), chapter, *place)
        shown[0] = f"not run yet: {made_by.rsplit('/', 1)[-1]}" if made_by else "not run yet"
    gaps = [verdicts.difference(record, cell.row, reference, metric, known)
            for record in (full, toy, mine) if record and reference]
    judged = next((gap for gap in gaps if gap is not None), None)
    claim = f"> {style.display_name(reference)}" if reference else MISSING
    word = verdicts.verdict(judged) if reference else MISSING
    return [cell.table, cell.model, style.display_name(cell.row), _paper_text(cell), *shown, claim, word]


def _paper_text(cell) -> str:
    if not math.isfinite(cell.value):
        return "not recovered"
    text = f"{cell.value:.{cell.decimals}f}" + ("†" if cell.status == "derived" else "")
    if math.isfinite(cell.low) and math.isfinite(cell.high):
        text += f" [{cell.low:.2f}, {cell.high:.2f}]"
    elif math.isfinite(cell.plus_minus):
        text += f" ± {cell.plus_minus:.{cell.decimals}f}"
    return text if pd.isna(cell.n) else f"{text}, n = {cell.n}"


def _measured(record: Record | None, arm: str, metric: str, share: bool) -> str:
    row = verdicts.find(record, arm, metric)
    return MISSING if row is None else f"{interval_text(row, share)}, n = {row.n}, s = {len(row.seeds)}"


def says_does_we(rows: Sequence[Mapping[str, str]]) -> Styler:
    """*Paper says / code does / we do*.

    Args:
        rows: each with ``about``, ``paper``, ``code``, ``we``, and optionally ``why`` and ``switch`` (the
            setting that chooses the other reading).

    Raises:
        ConfigError: a row lacks one of the four, or has a field that is none of these.
    """
    headings = {"about": "about", "paper": "the paper says", "code": "the code does", "we": "we do",
                "why": "because", "switch": "switch"}
    return styled(_checked(rows, headings, required=("about", "paper", "code", "we")))


def symbol_table(rows: Sequence[Mapping[str, str]]) -> Styler:
    """Symbols: how they are written, what they are called in the code, what they mean.

    Args:
        rows: fields of :data:`SYMBOL_COLUMNS`; ``symbol`` (LaTeX, no dollar signs) and ``meaning`` in each.

    Raises:
        ConfigError: a row lacks one of the two, or has an unknown field.
    """
    headings = {name: name for name in SYMBOL_COLUMNS} | {"code": "in the code", "paper": "in the paper"}
    return styled(_checked(rows, headings, required=("symbol", "meaning")), math_columns=["symbol"])


def _checked(rows: Sequence[Mapping[str, str]], headings: Mapping[str, str], required: Sequence[str]
             ) -> pd.DataFrame:
    allowed = f"{', '.join(required)} filled, of {', '.join(headings)}"
    for number, row in enumerate(rows):
        wrong = [n for n in required if not row.get(n)] + [n for n in row if n not in headings]
        if wrong:
            raise ConfigError(f"rows[{number}]", wrong, allowed)
    used = [name for name in headings if name in required or any(row.get(name) for row in rows)]
    cells = [[row.get(name, "") for name in used] for row in rows]
    return pd.DataFrame(cells, columns=[headings[name] for name in used])


def config_diff(params_a: Mapping[str, object], params_b: Mapping[str, object],
                sources: Mapping[str, str] | Callable[[str], str] = {}, *,
                names: tuple[str, str] = ("ours", "paper"), all_rows: bool = False) -> Styler:
    """Where two settings differ, and why.

    Args:
        params_a, params_b: parameter → value; mappings, or anything with ``model_dump``.
        sources: parameter → where the value comes from, or why it differs.
        names: headings of the two.
        all_rows: also the parameters that agree.
    """
    a, b = (dict(p.model_dump() if hasattr(p, "model_dump") else p) for p in (params_a, params_b))
    why = sources if callable(sources) else lambda name: sources.get(name, "")
    order = [*a, *(name for name in b if name not in a)]
    rows = [[n, str(a.get(n, MISSING)), str(b.get(n, MISSING)), why(n)] for n in order
            if all_rows or n not in a or n not in b or a[n] != b[n]]
    return styled(pd.DataFrame(rows, columns=["parameter", *names, "source or reason"]))
