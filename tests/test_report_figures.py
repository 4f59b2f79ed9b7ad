import base64
import io
import re

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from explorl.errors import ConfigError
from explorl.report import figures, figures_sde2, sketch, style
from explorl.report.stats import Estimate, seed_interval

COSINES = np.array([[1.0, 0.89, 0.67], [0.89, 1.0, 0.83], [0.67, 0.83, 1.0]])
STEPS = [0, 10, 20]
CURVES = {"cfl": np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.5]]), "sde2": np.array([[0.1, 0.2, 0.4]])}


def texts(axes):
    return [t.get_text() for t in axes.texts]


def every_figure():
    raw = {"oc": [0, 1, 0], "sd": [0.1, 1.0, 0.0]}
    return {
        "curves": figures.learning_curves(STEPS, CURVES, ylabel="accuracy", chance=0.1),
        "forest": figures.forest({"sde2": Estimate(0.5, 0.4, 0.6, 5)}, xlabel="accuracy", reference=0.3),
        "bars": figures.component_bars(["A1", "A2", "A3"], raw | {"advantage": [-1, 1.4, 0]}, total="advantage"),
        "gaming": figures.gaming_gallery(["plain", "shotgun"], [0.5, 2.0], [True, False], correct=[True, False]),
        "matrix": figures_sde2.similarity_matrix(COSINES, [0, 2], delta=0.8),
        "stairs": figures_sde2.uniq_staircase([0.5, 0.7, 0.9], {"A4": [1, 2, 3]}, delta=0.8),
        "valley": figures_sde2.valley([1, 2, 3], {0.5: [0.1, 0.1, 0.15], 0.8: [0.1, 0.04, 0.06]},
                                      by_count=[0.1, 0.2, 0.3], single=0.1),
        "z": figures_sde2.z_scores(raw, raw, labels=["A1", "A2", "A3"]),
    }


@pytest.fixture(scope="module")
def drawn():
    return every_figure()


@pytest.mark.parametrize("name", ["curves", "forest", "bars", "gaming", "matrix", "stairs", "valley", "z"])
def test_each_figure_is_transparent_readable_and_described(drawn, name):
    fig = drawn[name]
    assert isinstance(fig, Figure) and len(style.alt_text(fig)) > 40
    assert fig.get_facecolor()[3] == 0 and all(axes.get_facecolor()[3] == 0 for axes in fig.axes)
    labels = [t for axes in fig.axes for t in (axes.xaxis.label, axes.yaxis.label, axes.title) if t.get_text()]
    assert all(min(contrast(t.get_color(), page) for page in ("#ffffff", "#14181e")) >= 2.4 for t in labels)
    fig.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG") and len(buffer.getvalue()) > 2000


def contrast(a, b):
    def luminance(colour):
        c = np.array(to_rgb(colour))
        return float(np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_ink_and_arm_colours_are_legible_on_both_pages():
    for page in ("#ffffff", "#14181e"):
        assert contrast(style.INK, page) >= 3.9
        assert all(contrast(paint, page) >= 2.4 for paint in style.ARM_COLOURS.values())


def test_the_callers_style_comes_back():
    before = dict(mpl.rcParams)
    figures.forest({"sde2": Estimate(0.5, 0.4, 0.6, 5)}, xlabel="accuracy")
    assert dict(mpl.rcParams) == before


def test_learning_curves_draw_mean_and_t_band(drawn):
    axes = drawn["curves"].axes[0]
    means = {line.get_color(): line.get_ydata() for line in axes.lines}
    assert means[style.colour("cfl")] == pytest.approx([10, 25, 40])
    assert means[style.colour("sde2")] == pytest.approx([10, 20, 40])
    band = axes.collections[0].get_paths()[0].vertices
    _, low, high, _ = seed_interval([0.3, 0.5])
    assert band[band[:, 0] == 20][:, 1].min() == pytest.approx(100 * low)
    assert band[band[:, 0] == 20][:, 1].max() == pytest.approx(100 * high)
    assert {"GRPO-CFL", "SD-E²"} <= set(texts(axes))
    assert "SD-E² ends at 40" in style.alt_text(drawn["curves"])


def test_learning_curves_skip_missing_points_and_refuse_wrong_shapes():
    fig = figures.learning_curves(STEPS, {"sde2": np.array([[0.1, np.nan, 0.3], [0.1, np.nan, 0.5]])}, ylabel="x")
    assert np.isnan(fig.axes[0].lines[0].get_ydata()[1]) and fig.axes[0].lines[0].get_ydata()[2] == pytest.approx(40)
    with pytest.raises(ConfigError, match="sde2"):
        figures.learning_curves(STEPS, {"sde2": np.ones((2, 4))}, ylabel="x")


def test_forest_writes_the_numbers():
    fig = figures.forest({"base": Estimate(0.12, 0.10, 0.14, 5), "sde2": Estimate(0.4, -np.inf, np.inf, 1)},
                         xlabel="accuracy")
    axes = fig.axes[0]
    assert texts(axes) == ["12.0 [10.0, 14.0]   5 seeds", "40.0 (no interval)   1 seed"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["base", "SD-E²"]
    assert sum(len(line.get_xdata()) == 2 for line in axes.lines) == 1


def test_component_bars_have_one_panel_per_component_and_the_values(drawn):
    fig = drawn["bars"]
    assert [axes.get_title(loc="left") for axes in fig.axes] == ["final answer right", "exploration", "advantage"]
    assert [bar.get_width() for bar in fig.axes[2].patches] == pytest.approx([-1, 1.4, 0])
    assert texts(fig.axes[1]) == ["0.10", "1.00", "0.00"]
    with pytest.raises(ConfigError, match="oc"):
        figures.component_bars(["A1"], {"oc": [1, 2]})


def test_gaming_gallery_sorts_by_pay_and_marks_the_gamers(drawn):
    axes = drawn["gaming"].axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["shotgun  ✗", "plain  ✓"]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 0.5]
    assert axes.patches[0].get_facecolor()[:3] == pytest.approx(to_rgb(style.RED))
    with pytest.raises(ConfigError):
        figures.gaming_gallery(["a"], [1.0, 2.0], [True])


def test_similarity_matrix_frames_the_kept_and_brackets_the_redundant(drawn):
    axes = drawn["matrix"].axes[0]
    frames = [patch.get_xy() for patch in axes.patches]
    assert frames == [pytest.approx((0.03, 0.03)), pytest.approx((2.03, 2.03))]
    assert texts(axes).count("[0.89]") == 2 and texts(axes).count("[0.83]") == 2 and "0.67" in texts(axes)
    assert axes.get_title(loc="left") == "kept 2 of 3 at δ = 0.8"
    assert "Kept: strategy 1, strategy 3" in style.alt_text(drawn["matrix"])
    with pytest.raises(ConfigError):
        figures_sde2.similarity_matrix(np.ones((2, 3)), [0], delta=0.8)
    assert figures_sde2.similarity_matrix(np.ones((1, 1)), [0], delta=0.8).axes[0].get_title(loc="left") \
        == "kept 1 of 1 at δ = 0.8"


def test_staircase_steps_at_the_threshold(drawn):
    line = drawn["stairs"].axes[0].lines[0]
    assert line.get_drawstyle() == "steps-post" and list(line.get_ydata()) == [1, 2, 3]
    with pytest.raises(ConfigError, match="A4"):
        figures_sde2.uniq_staircase([0.5, 0.7], {"A4": [1]})


def test_valley_says_where_more_pays_less(drawn):
    words = style.alt_text(drawn["valley"])
    assert "mean cosine 0.5 has no valley" in words
    assert "mean cosine 0.8 pays less than one strategy at m = 2, 3 and ends at 0.06" in words
    assert {"c̄ = 0.5", "c̄ = 0.8", "GRPO-CFEE", "less than one strategy"} == set(texts(drawn["valley"].axes[0]))
    ys = [list(line.get_ydata()) for line in drawn["valley"].axes[0].lines]
    assert [0.1, 0.04, 0.06] in ys and [0.1, 0.2, 0.3] in ys


def test_z_panel_groups_equal_values(drawn):
    left = drawn["z"].axes[0]
    assert "A1 A3" in texts(left) and sorted(line.get_xdata()[0] for line in left.lines[:2]) == [0, 1]
    with pytest.raises(ConfigError, match="scaled"):
        figures_sde2.z_scores({"oc": [0]}, {"sd": [0]}, labels=["A1"])


@given(st.lists(st.floats(-10, 10), max_size=8), st.floats(0, 3))
def test_spread_keeps_order_distance_and_centre(targets, gap):
    placed = style.spread(np.array(targets), gap)
    order = np.argsort(targets, kind="stable")
    assert np.all(np.diff(placed[order]) >= gap - 1e-9)
    assert placed.sum() == pytest.approx(sum(targets), abs=1e-6)


def test_embedded_figure_is_self_contained_and_has_its_alternative_text():
    html, again = (style.embed(figures.forest({"sde2": Estimate(0.5, 0.4, 0.6, 5)}, xlabel="accuracy"))
                   for _ in range(2))
    alt, data = re.fullmatch(r'<img [^>]*alt="([^"]+)" src="data:image/svg\+xml;base64,([^"]+)">', html).groups()
    assert alt.startswith("Forest plot of accuracy") and html._repr_html_() == html
    svg = base64.b64decode(data).decode()
    assert "<svg" in svg and "<script" not in svg and not re.search(r'href="http', svg)
    assert html == again


def test_describe_escapes_into_the_attribute():
    fig = style.describe(figures.forest({"a": Estimate(0.5, 0.4, 0.6, 5)}, xlabel="x"), 'a "quoted"\n <b>')
    assert 'alt="a &quot;quoted&quot; &lt;b&gt;"' in style.embed(fig)


def test_sketches_are_steady_self_contained_and_accessible():
    for picture in (sketch.reward_anatomy, sketch.grpo_pipeline):
        svg = picture()
        assert svg == picture() and "<script" not in svg and "currentColor" in svg
        assert 'role="img"' in svg and "<title>" in svg and "<desc>" in svg
        assert set(re.findall(r'https?://[^"]+', svg)) == {"http://www.w3.org/2000/svg"}
    assert "a flat bonus" in sketch.reward_anatomy() and "pay for variety" in sketch.reward_anatomy()


def test_sketch_draws_what_it_is_given():
    boxes = {"a": sketch.Box(0, 0, 80, 40, ("<one>",)), "b": sketch.Box(160, 0, 80, 40, ("two",))}
    svg = sketch.draw(boxes, [sketch.Arrow("a", "b", "goes")], title="t", description="d")
    assert "&lt;one&gt;" in svg and ">goes</text>" in svg and svg.count("<path") == 2 * 2 + 2
    with pytest.raises(ConfigError, match="nowhere"):
        sketch.draw(boxes, [sketch.Arrow("a", "nowhere")], title="t", description="d")
