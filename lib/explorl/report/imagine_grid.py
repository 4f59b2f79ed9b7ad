"""IMAGINE's runs that vary one thing: α and γ (Fig. 8), the group size (Table 11), other ways to explore (Table 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from explorl.params_run import RunParams
from explorl.report import claims, figures_imagine_runs, paper, paper_rows, style, verdicts
from explorl.report.html import Html, escape
from explorl.report.records import MetricRow, Record
from explorl.report.stats import Estimate, seed_interval
from explorl.report.tables import MISSING, interval_text, styled

VARIED = tuple(paper_rows.PLAIN["imagine"])
"""The parameters that these runs vary: group size, KL coefficient, sampling temperature, α, γ."""
ANY_SAMPLES = ("eval_samples",)
"""More samples per test problem make an accuracy sharper and no other one."""
NO_GRID = "Fewer than two cells of the grid have been run at this scale, so there is nothing to draw."


class Grid(NamedTuple):
    """Accuracies over α and γ.

    Attributes:
        alphas, gammas: ascending.
        values: (seeds, alphas, gammas) in [0, 1]; NaN where there is no run.
        baseline: (seeds,) accuracy of GRPO without a bonus; NaN where there is no run.
        seeds: those that all cells have.
    """

    alphas: list[float]
    gammas: list[float]
    values: np.ndarray
    baseline: np.ndarray
    seeds: list[int]

    @property
    def reference(self) -> float | None:
        """GRPO's mean accuracy over the seeds that it has; None where it has none."""
        known = self.baseline[np.isfinite(self.baseline)]
        return float(known.mean()) if len(known) else None

    def gains(self) -> dict[tuple[float, float], Estimate]:
        """(α, γ) → how much better than GRPO, with the t interval of the per-seed differences."""
        gaps = self.values - self.baseline[:, None, None]
        found = {(a, g): gaps[:, i, j] for i, a in enumerate(self.alphas) for j, g in enumerate(self.gammas)}
        return {cell: seed_interval(gap[np.isfinite(gap)]) for cell, gap in found.items() if np.isfinite(gap).any()}


def plain(params: RunParams) -> dict[str, object]:
    """What tells a run from those that vary a setting of it, for :func:`claims.by_evidence` and :func:`curves.best`.

    Args:
        params: of this run.
    """
    return {name: getattr(params, name) for name in (*VARIED, "start")}


def over_alpha_gamma(records: Iterable[Record], *, scale: str = "toy", metric: str = "acc") -> Grid | None:
    """The accuracies that :func:`figures_imagine_runs.sensitivity` draws; None with fewer than two cells.

    Of the seeds, those that every cell has: a cell with more would be the mean of other seeds.

    Args:
        records: any; used are those of one scale that are alike but for α and γ (:func:`verdicts.setting`).
        scale: of the records.
        metric: a share, by the record's name.
    """
    family = _alike(records, ("alpha", "decay_gamma"), "imagine", scale, metric)
    rows = {cell: _seeds(verdicts.find(record, "imagine", metric)) for cell, record in family.items()}
    if len(rows) < 2:
        return None
    seeds = sorted(set.intersection(*(set(row) for row in rows.values())))
    alphas, gammas = (sorted({cell[i] for cell in rows}) for i in (0, 1))
    values = np.array([[[rows.get((alpha, gamma), {}).get(seed, np.nan) for gamma in gammas] for alpha in alphas]
                       for seed in seeds])
    without = [_seeds(row) for record in family.values() if (row := verdicts.find(record, "grpo", metric))]
    best = max(without, key=len, default={})
    return Grid(alphas, gammas, values.reshape(len(seeds), len(alphas), len(gammas)),
                np.array([best.get(seed, np.nan) for seed in seeds]), seeds)


def show(records: Iterable[Record], *, scale: str = "toy", chosen: tuple[float, float] | None = None,
         title: str = "") -> Html:
    """The grid of α and γ as a figure, or a sentence where it has not been run.

    Args:
        records, scale: as for :func:`over_alpha_gamma`.
        chosen: (α, γ) in use, framed if it is a cell.
        title: of the figure.
    """
    grid = over_alpha_gamma(records, scale=scale)
    if grid is None or not grid.seeds:
        return Html(f"<p>{escape(NO_GRID)}</p>")
    framed = chosen if chosen and chosen[0] in grid.alphas and chosen[1] in grid.gammas else None
    return style.embed(figures_imagine_runs.sensitivity(grid.alphas, grid.gammas, grid.values,
                                                        reference=grid.reference, chosen=framed, title=title))


def group_sizes(records: Iterable[Record], *, scale: str = "toy") -> Styler:
    """The paper's Table 11 beside our runs: accuracy by group size, with as many completions per step in all.

    Args:
        records: any; used are those of one scale that are alike but for the group size.
        scale: of the records.
    """
    ours = {size: record for (size, _), record
            in _alike(records, ("group_size", "prompts_per_step"), "imagine", scale).items()}
    printed, usual = _printed("11"), paper_rows.PLAIN["imagine"]["group_size"]
    theirs = {size: [printed[f"{arm}_g{size}" if size != usual else arm] for arm in ("grpo", "imagine")]
              for size in (2, 3, 4, usual)}
    rows = []
    for size in sorted({*ours, *theirs}):
        record = ours.get(size)
        gap = verdicts.difference(record, "imagine", "grpo", "acc") if record else None
        numbers = [f"{value:.2f}" for value in theirs.get(size, ())] or [MISSING, MISSING]
        mine = [interval_text(verdicts.find(record, arm, "acc"), True) for arm in ("grpo", "imagine")]
        rows.append([str(size), *numbers, *mine, *_judged(gap)])
    columns = ["group size", "GRPO, paper", "IMAGINE, paper", "GRPO, ours", "IMAGINE, ours", "difference in points",
               "seeds", "IMAGINE > GRPO"]
    return styled(pd.DataFrame(rows, columns=columns), "Accuracy (%) by group size: the paper's Countdown-4 (Table 11) "
                  f"and our runs at scale {scale}; value [95 % interval].")


def other_ways(records: Iterable[Record], *, scale: str = "toy") -> Styler:
    """The paper's Table 9 beside our runs: GRPO with a KL term, or sampled colder, against IMAGINE.

    Args:
        records: any; used are those of one scale that are alike but for temperature and KL coefficient.
        scale: of the records.
    """
    varied, printed = ("rollout_temperature", "beta_kl"), _printed("9")
    ours = _alike(records, varied, "grpo", scale)
    usual = tuple(paper_rows.PLAIN["imagine"][name] for name in varied)
    cells = {_place(row, varied): row for row in printed if row != "imagine"}
    places = [*cells, *(place for place in sorted(ours) if place not in cells)]
    novel = verdicts.find(ours.get(usual), "imagine", "acc")
    rows = []
    for place in places:
        row = verdicts.find(ours.get(place), "grpo", "acc")
        name = cells.get(place)
        told = style.display_name(name) if name else f"GRPO, T = {place[0]:g}, β = {place[1]:g}"
        rows.append([told, f"{printed[name]:.2f}" if name else MISSING, interval_text(row, True),
                     *_judged(_gap(novel, row))])
    rows.append([style.display_name("imagine"), f"{printed['imagine']:.2f}", interval_text(novel, True), MISSING,
                 MISSING, MISSING])
    columns = ["arm", "paper", "ours", "IMAGINE's lead in points", "seeds", "IMAGINE > this"]
    return styled(pd.DataFrame(rows, columns=columns), "Accuracy (%) of other ways to explore: the paper's Countdown-4 "
                  f"(Table 9) and our runs at scale {scale}; value [95 % interval].")


def _alike(records: Iterable[Record], varied: Sequence[str], arm: str, scale: str, metric: str = "acc"
           ) -> dict[tuple, Record]:
    """Values of what is varied → the record with most seeds, of the largest family that is alike in all else.

    Alike includes the number of completions per step, in whatever groups.
    """
    families: dict[tuple, dict[tuple, Record]] = {}
    for record in records:
        row = verdicts.find(record, arm, metric) if (record.chapter, record.scale) == ("imagine", scale) else None
        if row is None or any(name not in record.params for name in varied):
            continue
        completions = record.params.get("group_size", 1) * record.params.get("prompts_per_step", 1)
        family = families.setdefault((completions, *verdicts.setting(record, (*varied, *ANY_SAMPLES))), {})
        cell = tuple(record.params[name] for name in varied)
        if cell not in family or len(row.seeds) > len(verdicts.find(family[cell], arm, metric).seeds):
            family[cell] = record
    return max(families.values(), key=len, default={})


def _seeds(row: MetricRow) -> dict[int, float]:
    return {seed.seed: seed.value for seed in row.seeds if seed.value is not None}


def _gap(a: MetricRow | None, b: MetricRow | None) -> Estimate | None:
    """Of the seeds that both have, the mean difference with its interval; None without a common one."""
    left, right = (_seeds(row) if row else {} for row in (a, b))
    gaps = [left[seed] - right[seed] for seed in left if seed in right]
    return seed_interval(gaps) if gaps else None


def _judged(gap: Estimate | None) -> list[str]:
    return [claims.in_points(gap), str(gap.n) if gap else MISSING, verdicts.verdict(gap)]


def _printed(table: str) -> Mapping[str, float]:
    """Row → the paper's accuracy in percent."""
    frame = paper.load("imagine")
    cells = frame[(frame.table == table) & (frame.metric == "acc")]
    return dict(zip(cells.row, cells.value))


def _place(row: str, names: Sequence[str]) -> tuple:
    settings = {**paper_rows.PLAIN["imagine"], **paper_rows.stand("imagine", row).settings}
    return tuple(settings[name] for name in names)
