"""One look for every figure: colours, sizes, and legibility on a white and on a dark page.

Figures have a transparent background, and all text and axes are one mid grey that has a contrast of at least
4:1 on white and on the dark theme's page. Data colours are Okabe and Ito's, which colour-blind readers can
tell apart; the two that vanish on one of the pages (black, yellow) are left out.
"""

from __future__ import annotations

import base64
import contextlib
import io
from collections.abc import Iterator, Mapping

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from explorl.report.html import Html, escape

INK = "#7b8087"
FAINT = "#7b80874d"
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#2b83ba", "#e08a00", "#009e73", "#c76aa5", "#56a9d8", "#d55e00"

ARM_COLOURS: Mapping[str, str] = {
    "base": INK, "single_trace": INK, "multi_strategy": "#9a8f7d", "cfl": GREEN, "cfee": ORANGE, "sde2": BLUE,
    "sde2_shuffled": PINK, "oc_fa": RED, "oc_fa_sd": SKY,
    "empo": BLUE, "empo_log": SKY, "vote": ORANGE, "supervised": GREEN, "random": PINK, "sft": "#9a8f7d",
    "grpo": GREEN, "imagine": BLUE, "ppo": "#9a8f7d", "imagine_ppo": ORANGE, "dapo": PINK, "imagine_dapo": RED,
    "uniform": PINK, "constant": ORANGE, "length": RED, "shuffled": SKY,
    "trajectory_aware": ORANGE, "error_conditioned": SKY,
}
ARM_NAMES: Mapping[str, str] = {
    "base": "base", "single_trace": "single trace", "multi_strategy": "multi-strategy", "cfl": "GRPO-CFL",
    "cfee": "GRPO-CFEE", "sde2": "SD-E²", "sde2_shuffled": "SD-E², shuffled", "oc_fa": "outcome + format",
    "oc_fa_sd": "outcome + format + exploration",
    "empo": "EMPO", "empo_log": "EMPO, log p", "vote": "majority vote", "supervised": "GRPO, supervised",
    "random": "random reward", "sft": "SFT", "instruct": "Instruct", "odpo": "ODPO",
    "grpo": "GRPO", "imagine": "IMAGINE", "ppo": "PPO", "imagine_ppo": "IMAGINE (PPO)", "dapo": "DAPO",
    "imagine_dapo": "IMAGINE (DAPO)", "uniform": "uniform bonus", "constant": "constant bonus",
    "length": "length bonus", "shuffled": "shuffled novelty",
    "trajectory_aware": "+ novelty per answer", "error_conditioned": "+ wrong answers alone",
    **{f"{arm}_g{size}": f"{name}, G = {size}" for arm, name in (("grpo", "GRPO"), ("imagine", "IMAGINE"))
       for size in (2, 3, 4)},
    **{f"grpo_beta_{beta}": f"GRPO, β = {beta}" for beta in (0.001, 0.01)},
    **{f"grpo_temp_{heat}": f"GRPO, T = {heat}" for heat in (0.3, 0.6)},
}
CONTROLS = ("sde2_shuffled", "random", "uniform", "constant", "length", "shuffled")
"""Arms that keep everything of a method but its cause; figures draw them dashed."""
RIGHT, WRONG = BLUE, RED
"""Colours of what is right and of what is wrong."""
COMPONENT_COLOURS: Mapping[str, str] = {
    "oc": BLUE, "re": SKY, "fa": ORANGE, "sd": GREEN, "rd": GREEN, "l": PINK, "reward": GREEN, "p": ORANGE,
    "score": BLUE, "novelty_error": SKY, "bonus": ORANGE,
}
COMPONENT_NAMES: Mapping[str, str] = {
    "oc": "final answer right", "re": "a strategy right", "fa": "format", "sd": "exploration",
    "rd": "exploration (count)", "l": "length", "p": "cluster's share", "entropy_nats": "entropy (nats)",
    "majority": "in the majority", "kept": "group kept", "blank": "no answer",
    "score": "outcome score", "novelty_error": "novelty error", "rnd_loss": "predictor's loss",
}
SEQUENTIAL = LinearSegmentedColormap.from_list("explorl", ["#dfe9ef", "#7fb2d0", "#2b83ba", "#1b4f72"])

_RC = {
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "legend.frameon": False,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "axes.titlecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "grid.color": INK, "grid.alpha": 0.25, "grid.linewidth": 0.6,
    "font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.labelsize": 10, "axes.linewidth": 0.8, "lines.linewidth": 2, "lines.solid_capstyle": "round",
    "patch.edgecolor": "none", "patch.force_edgecolor": False, "figure.dpi": 110,
    "svg.fonttype": "path", "svg.hashsalt": "explorl", "figure.constrained_layout.use": True,
}


@contextlib.contextmanager
def look() -> Iterator[None]:
    """The house style, for the duration of a ``with`` block; the caller's settings come back afterwards."""
    with sns.axes_style("whitegrid"), mpl.rc_context(_RC):
        yield


def canvas(width: float = 6.4, height: float = 3.6, columns: int = 1, rows: int = 1, **kwargs
           ) -> tuple[Figure, np.ndarray]:
    """A figure (inches) with a flat array of axes; closed in pyplot, so that a notebook shows it once."""
    fig, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **kwargs)
    plt.close(fig)
    return fig, axes.reshape(-1)


def tidy(axes: Axes, grid: str = "y") -> None:
    """Drop the frame, but for the baseline under vertical values; grid: "x", "y", "both" or ""."""
    sns.despine(ax=axes, left=True, bottom=grid == "x")
    axes.grid(False)
    if grid:
        axes.grid(True, axis=grid)
    axes.set_axisbelow(True)


def colour(name: str, index: int = 0) -> str:
    """The colour of an arm or component; a stranger takes the ``index``-th of the palette."""
    palette = (BLUE, ORANGE, GREEN, PINK, RED, SKY)
    return ARM_COLOURS.get(name) or COMPONENT_COLOURS.get(name) or palette[index % len(palette)]


def dashes(name: str) -> str | tuple:
    """The line style of an arm: dashed for a control."""
    return (0, (4, 1.5)) if name in CONTROLS else "-"


def display_name(name: str) -> str:
    """The name to print for an arm or component.

    >>> display_name("sde2"), display_name("sd"), display_name("my_arm")
    ('SD-E²', 'exploration', 'my arm')
    """
    return ARM_NAMES.get(name) or COMPONENT_NAMES.get(name) or name.replace("_", " ")


def describe(fig: Figure, text: str) -> Figure:
    """Attach the alternative text: what a reader who cannot see the figure should know."""
    fig.alt_text = " ".join(text.split())
    return fig


def alt_text(fig: Figure) -> str:
    """The alternative text that :func:`describe` attached, or an empty string."""
    return getattr(fig, "alt_text", "")


def spread(targets: np.ndarray, gap: float) -> np.ndarray:
    """Move label positions apart by at least ``gap``, as little as possible, keeping their order.

    Args:
        targets: (n,) wanted positions, any order.
        gap: least distance, ≥ 0, same unit.

    >>> spread(np.array([1.0, 1.0, 5.0]), 1.0).tolist()
    [0.5, 1.5, 5.0]
    """
    order = np.argsort(targets, kind="stable")
    wanted = np.asarray(targets, dtype=np.float64)[order] - gap * np.arange(len(order))
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1].extend(last)
    placed = np.concatenate([[np.mean(b)] * len(b) for b in blocks]) if blocks else np.zeros(0)
    result = np.empty(len(order))
    result[order] = placed + gap * np.arange(len(order))
    return result


def embed(fig: Figure) -> Html:
    """The figure as one self-contained ``<img>`` (SVG inside) that carries its alternative text."""
    with look():
        buffer = io.StringIO()
        fig.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue().encode()).decode()
    return Html(f'<img class="dark-light" style="max-width:100%" alt="{escape(alt_text(fig))}" '
                f'src="data:image/svg+xml;base64,{data}">')
