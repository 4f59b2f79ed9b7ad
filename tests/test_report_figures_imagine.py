"""The IMAGINE chapter's figures say what their arrays hold, in the picture and in the alternative text."""

import io
import math

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from explorl.errors import ConfigError
from explorl.report import figures_imagine, figures_imagine_runs, sketch_imagine, style
from explorl.report.stats import seed_interval

NAMES = ("visited", "states", "sign flip", "decay", "kinds", "loss", "length", "bonus", "advantages", "sensitivity")
LENGTHS = (253, 416, 515, 549, 701)
COUNTS = [sum(length >= t for length in LENGTHS) for t in range(1, 702)]
GRID = np.array([0.0, 1.0, 2.0])
PATH = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 2.0]])
FIELD = np.full((2, 3, 3), 0.8)
FIELD[1, 0, :2] = 0.2
PLAIN, BEFORE = [0.447212] * 4 + [-1.788850], [-0.538348] + [0.685171] * 3 + [-1.517164]
AFTER = [0.447212] + [0.947212] * 3 + [-1.288850]
FLIP = {"no bonus": PLAIN, "added before": BEFORE, "added after": AFTER}
LABELS, RIGHT = ["a", "b", "c", "d", "e"], [True] * 4 + [False]
FACTORS = [40 / (40 + n) for n in range(250)]
AUCS = {"by position": {"shifted": [0.82, 0.66, 0.85], "gibberish": [0.8, 0.66, 0.89]},
        "pooled": {"shifted": [0.51, 0.51, 0.57], "gibberish": [0.98, 0.89, 0.75]}}
LOSSES = {"grpo": np.array([[0.1, 0.01], [0.1, 0.0001]]), "imagine": np.array([[0.1, 0.01], [0.1, np.nan]])}
SEEDS = {0: ([10, 20, 30, 40], [1e-3, 2e-3, 3e-3, 4e-3]), 1: ([10, 20, 30, 40], [4e-3, 3e-3, 2e-3, 1e-3])}
VALUES = np.array([[[0.30, 0.40], [0.50, np.nan]], [[0.40, 0.40], [0.60, np.nan]]])


def every_figure():
    runs = figures_imagine_runs
    return {
        "visited": figures_imagine.visited(GRID, GRID, FIELD, PATH, [0, 2], times=[0, 10]),
        "states": figures_imagine.states(COUNTS, LENGTHS),
        "sign flip": figures_imagine.sign_flip(LABELS, RIGHT, FLIP),
        "decay": figures_imagine.decay_curve(FACTORS),
        "kinds": figures_imagine.novel_kinds(AUCS),
        "loss": runs.rnd_loss([0, 10], LOSSES),
        "length": runs.novelty_length(SEEDS, cap=40),
        "bonus": runs.bonus_histogram([0.0, 0.02, 0.08, 0.5], [False, False, False, True], alpha=0.5),
        "advantages": runs.advantages([1.0, -0.4, -0.4, 0.0], [1.0, 0.1, -0.3, 0.2],
                                      ["right", "format", "format", "none"]),
        "sensitivity": runs.sensitivity([0.5, 1.3], [10, 40], VALUES, reference=0.4, chosen=(1.3, 10)),
    }


@pytest.fixture(scope="module")
def drawn():
    return every_figure()


def texts(axes):
    return [t.get_text() for t in axes.texts]


@pytest.mark.parametrize("name", NAMES)
def test_each_figure_is_transparent_and_described(drawn, name):
    fig = drawn[name]
    assert isinstance(fig, Figure) and len(style.alt_text(fig)) > 60
    assert fig.get_facecolor()[3] == 0 and all(axes.get_facecolor()[3] == 0 for axes in fig.axes)
    fig.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG") and len(buffer.getvalue()) > 1000


def test_visited_compares_the_path_with_the_rest_on_one_scale(drawn):
    fig = drawn["visited"]
    first, second = fig.axes[:2]
    assert [panel.get_title(loc="left") for panel in (first, second)] == ["step 0", "step 10"]
    assert first.get_xlabel() == "nothing visited" and "0.25 × elsewhere" in second.get_xlabel()
    assert {panel.images[0].norm for panel in (first, second)} == {first.images[0].norm}
    assert first.images[0].norm.vmin == 0.2 and first.images[0].norm.vmax == 0.8
    assert first.images[0].get_extent() == [-0.5, 2.5, -0.5, 2.5]
    ahead, behind, here = second.lines
    assert behind.get_xydata().tolist() == PATH[:2].tolist() and ahead.get_xydata().tolist() == PATH[1:].tolist()
    assert here.get_xydata().tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(("field", "change"), [
    ("x", {"x": [0.0, 1.0, 3.0]}), ("y", {"y": [2.0, 1.0, 0.0]}), ("errors", {"errors": FIELD[:1]}),
    ("errors", {"errors": 0 * FIELD}), ("path", {"reached": [0, 4]}), ("path", {"path": PATH.T[:, :0]}),
])
def test_visited_refuses_what_it_can_not_draw(field, change):
    given = {"x": GRID, "y": GRID, "errors": FIELD, "path": PATH, "reached": [0, 2]} | change
    with pytest.raises(ConfigError, match=f"^{field}"):
        figures_imagine.visited(**given)


def test_states_add_up_to_the_papers_example(drawn):
    axes = drawn["states"].axes[0]
    assert texts(axes) == ["every prefix: 2434 inputs", "every response once: 5 inputs"]
    assert axes.lines[0].get_xdata().tolist() == list(LENGTHS)
    area = axes.collections[0].get_paths()[0].vertices
    assert area[:, 1].max() == 5 and area[:, 0].max() == 701
    with pytest.raises(ConfigError, match="counts"):
        figures_imagine.states(COUNTS[:-1], LENGTHS)


def test_only_the_turned_sign_is_marked(drawn):
    fig = drawn["sign flip"]
    assert [[t for t in texts(panel) if "turns" in t] for panel in fig.axes] == [[], ["-0.54 turns"], []]
    assert [bar.get_width() for bar in fig.axes[2].patches] == pytest.approx(AFTER)
    assert fig.axes[0].patches[4].get_facecolor()[:3] == pytest.approx(to_rgb(style.WRONG))
    assert style.alt_text(fig).count("the sign of") == 1 and "the sign of a turns" in style.alt_text(fig)
    with pytest.raises(ConfigError, match="short"):
        figures_imagine.sign_flip(LABELS, RIGHT, {"no bonus": PLAIN, "short": PLAIN[:2]})


def test_a_bonus_where_there_was_no_advantage_turns_nothing():
    fig = figures_imagine.sign_flip(["a", "b"], [False, False], {"no bonus": [0.0, 0.0], "after": [0.5, -0.1]})
    assert "turns" not in style.alt_text(fig)


def test_decay_writes_the_marks_and_the_budget(drawn):
    factor, budget = drawn["decay"].axes
    assert texts(factor) == ["1", "0.8", "0.5", "0.25", "0.14"] and texts(budget) == ["79.67 in 250 steps"]
    assert budget.lines[0].get_ydata()[:2] == pytest.approx([1, 1 + 40 / 41])
    assert texts(figures_imagine.decay_curve(FACTORS[:20]).axes[0]) == ["1", "0.8", "0.68"]


def test_kinds_are_means_with_t_intervals_cut_at_the_ends(drawn):
    axes = drawn["kinds"].axes[0]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_markersize() == 8]
    assert dots == pytest.approx([np.mean(v) for way in AUCS.values() for v in way.values()])
    bars = [line.get_xdata() for line in axes.lines if line.get_linewidth() == 2.4]
    mean, low, high, _ = seed_interval(AUCS["by position"]["shifted"])
    assert high > 1 and bars[0] == pytest.approx([low, 1]) and len(bars) == 4
    assert "pooled, gibberish 0.87 [" in style.alt_text(drawn["kinds"])
    with pytest.raises(ConfigError, match="pooled"):
        figures_imagine.novel_kinds({**AUCS, "pooled": {"shifted": [0.5]}})


def test_one_seed_has_no_interval():
    lone = figures_imagine.novel_kinds({"pooled": {"gibberish": [0.9]}})
    assert style.alt_text(lone).endswith("pooled, gibberish 0.90.")


def test_losses_are_geometric_means_on_a_logarithmic_axis(drawn):
    axes = drawn["loss"].axes[0]
    assert axes.get_yscale() == "log" and texts(axes) == ["GRPO", "IMAGINE"]
    by_colour = {line.get_color(): line.get_ydata() for line in axes.lines}
    assert by_colour[style.colour("grpo")] == pytest.approx([0.1, 0.001])
    assert by_colour[style.colour("imagine")] == pytest.approx([0.1, 0.01])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 10][:, 1].max() == pytest.approx(10 ** seed_interval([-2, -4])[2])
    for wrong in (np.ones((2, 3)), np.zeros((2, 2))):
        with pytest.raises(ConfigError, match="imagine"):
            figures_imagine_runs.rnd_loss([0, 10], {"imagine": wrong})


def test_every_seed_has_its_rank_correlation(drawn):
    fig = drawn["length"]
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["seed 0\nρ = +1.00", "seed 1\nρ = -1.00"]
    assert "+1.00 for seed 0, -1.00 for seed 1" in style.alt_text(fig)
    assert [axes.lines[1].get_xdata()[0] for axes in fig.axes] == [40, 40]
    seven = figures_imagine_runs.novelty_length({seed: SEEDS[0] for seed in range(7)})
    assert len(seven.axes) == 10 and not seven.axes[7].axison
    with pytest.raises(ConfigError, match="seeds"):
        figures_imagine_runs.novelty_length({0: ([1, 2, 3, 4], [0.1, 0.2, 0.0, 0.1])})


def test_bonus_tells_the_median_and_what_the_cut_off_take(drawn):
    axes = drawn["bonus"].axes[0]
    shown = texts(axes)
    assert "median 0.05" in shown and "cut off: 1 answers, 83% of all bonus" in shown
    assert sum(bar.get_height() for bar in axes.patches) == 4
    assert "take 83% of all bonus" in style.alt_text(drawn["bonus"])
    nothing = figures_imagine_runs.bonus_histogram([0.0, 0.0], [True, False], alpha=0.5)
    assert "take 0% of all bonus" in style.alt_text(nothing)
    with pytest.raises(ConfigError, match="truncated"):
        figures_imagine_runs.bonus_histogram([0.1], [], alpha=0.5)


def test_advantages_are_split_by_kind(drawn):
    fig = drawn["advantages"]
    assert [axes.get_title(loc="left") for axes in fig.axes] == [
        "correct: 1; above 0: 100% before, 100% after", "wrong, well formed: 2; above 0: 0% before, 50% after",
        "no answer: 1; above 0: 0% before, 100% after"]
    filled = [bar.get_height() for bar in fig.axes[1].patches if hasattr(bar, "get_height")]
    assert sum(filled) == 2
    with pytest.raises(ConfigError, match="kinds"):
        figures_imagine_runs.advantages([1.0], [1.0], ["other"])


def test_sensitivity_brackets_what_does_not_beat_the_reference(drawn):
    axes = drawn["sensitivity"].axes[0]
    assert texts(axes) == ["[35.0]", "[40.0]", "55.0", "–"]
    frame = axes.patches[0]
    assert frame.get_xy() == pytest.approx((-0.47, 0.53)) and math.isclose(frame.get_width(), 0.94)
    assert "2 cells do not beat the 40.0 without a bonus" in style.alt_text(drawn["sensitivity"])
    with pytest.raises(ConfigError, match="values"):
        figures_imagine_runs.sensitivity([0.5], [10, 40], VALUES)


def test_controls_are_dashed_and_arms_of_one_figure_differ():
    controls = ("uniform", "constant", "length", "shuffled")
    for arms in (("grpo", "imagine", *controls), ("ppo", "imagine_ppo", "grpo", "imagine", "dapo", "imagine_dapo")):
        assert len({style.colour(arm) for arm in arms}) == len({style.display_name(arm) for arm in arms}) == 6
        assert [arm for arm in arms if style.dashes(arm) != "-"] == [arm for arm in arms if arm in controls]


def test_sketch_is_steady_self_contained_and_accessible():
    svg = sketch_imagine.curiosity()
    assert svg == sketch_imagine.curiosity() and "<script" not in svg and 'role="img"' in svg
    assert "a fixed network" in svg and "0 if the answer is right" in svg and "<desc>" in svg
