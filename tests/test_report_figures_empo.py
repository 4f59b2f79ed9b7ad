"""The EMPO chapter's figures say what their arrays hold, in the picture and in the alternative text."""

import io
import math

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from explorl.errors import ConfigError
from explorl.papers import empo
from explorl.papers.empo_metrics import calibration
from explorl.report import figures_empo, figures_empo_runs, sketch_empo, style
from explorl.report.figures_empo import Cluster
from explorl.report.stats import seed_interval

KS = [1, 2, 4]
PASS = {"base": np.array([[0.2, 0.4, 0.6]]), "empo": np.array([[0.4, 0.4, 0.5], [0.5, 0.4, 0.5]]),
        "vote": np.array([[0.1, 0.2, 0.3]])}
SIDES = {"empo": {"right_right": 30, "wrong_right": 5, "right_wrong": 3, "wrong_wrong": 22}}
GROUPS = {"cost in $": [Cluster("12", 6, "right"), Cluster("", 1, "blank"), Cluster("13", 1, "wrong")]}
FACES = {name: {"empo": np.array([[p, 1.2], [end, 0.1]])}
         for name, p, end in (("right", 0.4, 0.9), ("wrong", 0.3, 0.0))}


def every_figure():
    return {
        "clusters": figures_empo.cluster_bars(GROUPS),
        "certainty": figures_empo.certainty([0.1, 0.1, 0.9], [0.0, 0.9, 0.3], [False, True, True]),
        "partitions": figures_empo.partitions(["1/2", "50%"], {"first match": [0, 1], "connected": [0, 0]}),
        "pushes": figures_empo.pushes({4: ([0.25, 0.5, 0.75], [-1.5, 0.0, 0.5])}),
        "gate": figures_empo.gate_histogram([0.0, 0.5, math.log(8)], [True, True, False], 8),
        "pass": figures_empo_runs.pass_at_k(KS, PASS),
        "reliability": figures_empo_runs.reliability({"empo": calibration([0.2, 0.9, 0.9], [False, True, False])}),
        "sides": figures_empo_runs.sides(SIDES),
        "faces": figures_empo_runs.two_faces(FACES),
    }


@pytest.fixture(scope="module")
def drawn():
    return every_figure()


def texts(axes):
    return [t.get_text() for t in axes.texts]


@pytest.mark.parametrize("name", ["clusters", "certainty", "partitions", "pushes", "gate", "pass", "reliability",
                                  "sides", "faces"])
def test_each_figure_is_transparent_and_described(drawn, name):
    fig = drawn[name]
    assert isinstance(fig, Figure) and len(style.alt_text(fig)) > 40
    assert fig.get_facecolor()[3] == 0 and all(axes.get_facecolor()[3] == 0 for axes in fig.axes)
    fig.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG") and len(buffer.getvalue()) > 1000


def test_cluster_bars_are_shares_in_order_with_blanks_last(drawn):
    axes = drawn["clusters"].axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.75, 0.125, 0.125])
    paints = [bar.get_facecolor() for bar in axes.patches]
    assert paints[0][:3] == pytest.approx(to_rgb(style.RIGHT)) and paints[1][:3] == pytest.approx(to_rgb(style.WRONG))
    assert paints[2][3] < 0.5 and {"12", "13", "H = 0.74"} <= set(texts(axes))
    assert "12 ×6 right, blank ×1 blank, 13 ×1 wrong, H = 0.74" in style.alt_text(drawn["clusters"])
    with pytest.raises(ConfigError, match="question"):
        figures_empo.cluster_bars({"question": [Cluster("1", 1, "maybe")]})


def test_dollars_and_long_answers_do_not_break_a_label():
    fig = figures_empo.cluster_bars({"$x": [Cluster(r"$\frac{1}{2" + "x" * 200, 3, "wrong"), Cluster("$", 1, "right")]})
    fig.savefig(io.BytesIO(), format="svg")
    shown = [t for t in texts(fig.axes[0]) if t.startswith("$")]
    assert max(map(len, shown)) < 60 and shown[0].endswith("…")


def test_certainty_counts_the_confident_and_wrong(drawn):
    assert "confident and wrong: 1" in texts(drawn["certainty"].axes[0])
    fig = figures_empo.certainty([0.1, 0.1], [0.0, 0.0], [False, False])
    marks = [line.get_markersize() for line in fig.axes[0].lines]
    assert len(marks) == 1 and marks[0] > drawn["certainty"].axes[0].lines[0].get_markersize()
    with pytest.raises(ConfigError, match="majority_right"):
        figures_empo.certainty([0.1], [0.0, 1.0], [False])


def test_partitions_give_one_colour_to_one_cluster(drawn):
    first, second, joined, again = [p.get_facecolor() for p in drawn["partitions"].axes[0].patches]
    assert first != second and first == joined == again
    assert "first match: 0 1; connected: 0 0" in style.alt_text(drawn["partitions"])
    with pytest.raises(ConfigError, match="connected"):
        figures_empo.partitions(["1", "2"], {"connected": [0]})


def test_pushes_name_the_lone_answer():
    shares = [k / 16 for k in range(1, 16)]
    values = [empo.normalise(np.repeat([f, 1 - f], [k, 16 - k]), 16)[0] for k, f in enumerate(shares, start=1)]
    fig = figures_empo.pushes({16: (shares, values)})
    assert "G = 16: -3.75" in texts(fig.axes[0]) and "from -3.75 for a lone answer to +0.25" in style.alt_text(fig)


def test_gate_counts_open_bounds(drawn):
    assert "Between the thresholds 0.00 and 2.08 nats lie 1; 1 are at or below" in style.alt_text(drawn["gate"])
    heights = [bar.get_height() for bar in drawn["gate"].axes[0].patches]
    assert sum(heights) == 3 and [line.get_xdata()[0] for line in drawn["gate"].axes[0].lines] == pytest.approx(
        [0, math.log(8)])


def test_pass_at_k_marks_where_the_base_is_level(drawn):
    axes = drawn["pass"].axes[0]
    assert axes.get_xscale() == "log" and texts(axes) == ["base", "EMPO", "majority vote"]
    by_colour = {line.get_color(): line for line in axes.lines[::-1]}
    assert by_colour[style.colour("empo")].get_ydata() == pytest.approx([45, 40, 50])
    ring = [line for line in axes.lines if line.get_fillstyle() == "none"]
    assert len(ring) == 1 and (ring[0].get_xdata()[0], ring[0].get_ydata()[0]) == (2, pytest.approx(40))
    band = axes.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 1][:, 1].min() == pytest.approx(100 * seed_interval([0.4, 0.5])[1])
    assert "base is level with EMPO from k = 2 on" in style.alt_text(drawn["pass"])
    with pytest.raises(ConfigError, match="base"):
        figures_empo_runs.pass_at_k(KS, {"base": np.ones((1, 2))})


@pytest.mark.parametrize(("base", "arm", "found"), [
    ([0.2, 0.4, 0.6], [0.4, 0.4, 0.5], {"empo": 2}), ([0.2, 0.4, 0.6], [0.4, 0.5, 0.7], {}),
    ([0.2, 0.4, 0.6], [0.1, 0.2, 0.3], {}), ([0.2, 0.5, 0.4], [0.3, 0.4, 0.5], {}),
])  # fmt: skip
def test_a_crossing_lasts(base, arm, found):
    assert figures_empo_runs.crossings(KS, {"base": np.array(base), "empo": np.array(arm)}) == found
    assert figures_empo_runs.crossings(KS, {"empo": np.array(arm)}) == {}


def test_reliability_draws_filled_bins_and_the_error(drawn):
    axes = drawn["reliability"].axes[0]
    assert axes.lines[1].get_xdata() == pytest.approx([0.2, 0.9])
    assert axes.lines[1].get_ydata() == pytest.approx([0, 0.5])
    assert "EMPO, error 0.33" in texts(axes)


def test_sides_are_percent_of_all_problems(drawn):
    assert [bar.get_width() for bar in drawn["sides"].axes[0].patches] == pytest.approx([50, 25 / 3, 5, 110 / 3])
    assert "stays right 30, becomes right 5, becomes wrong 3, stays wrong 22" in style.alt_text(drawn["sides"])


def test_two_faces_have_a_column_per_start(drawn):
    fig = drawn["faces"]
    assert len(fig.axes) == 4 and fig.axes[1].lines[0].get_ydata() == pytest.approx([0.3, 0.0])
    assert fig.axes[2].lines[0].get_ydata() == pytest.approx([1.2, 0.1])
    assert "wrong, EMPO: p from 0.30 to 0.000" in style.alt_text(fig)


def test_controls_are_dashed_and_arms_have_names_and_colours_of_their_own():
    arms = ("base", "empo", "empo_log", "vote", "supervised", "random", "sft")
    assert len({style.colour(arm) for arm in arms}) == len({style.display_name(arm) for arm in arms}) == len(arms)
    assert [arm for arm in arms if style.dashes(arm) != "-"] == ["random"]


def test_sketch_is_steady_self_contained_and_accessible():
    svg = sketch_empo.clusters_pay()
    assert svg == sketch_empo.clusters_pay() and "<script" not in svg and 'role="img"' in svg
    assert "pay the share" in svg and "4 of 8" in svg and "<desc>" in svg
