"""The critic's figure: seeds, mean, held-out problems and the line to pass, in the picture and in its text."""

import io
import warnings

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from explorl.errors import ConfigError
from explorl.report import figures_ppo, style

FRESH = (np.array([1, 2, 3, 4]), {
    "ppo": np.array([[-4.0, 0.1, np.nan, 0.5], [-2.0, 0.3, np.nan, 0.7]]),
    "imagine_ppo": np.array([[0.0, 0.2, 0.3, 0.1], [0.0, 0.2, 0.5, 0.3]])})
HELD = (np.array([2, 4]), {"ppo": np.array([[0.1, 0.3], [0.2, 0.1]])})


@pytest.fixture(scope="module")
def drawn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return figures_ppo.explained_variance(FRESH, HELD, line=0.2)


def test_one_panel_per_arm_on_one_scale(drawn):
    first, second = drawn.axes
    assert [panel.get_title(loc="left") for panel in drawn.axes] == ["PPO", "IMAGINE (PPO)"]
    assert first.get_ylim() == second.get_ylim() == (-1.0, 1.02)
    drawn.savefig(buffer := io.BytesIO(), format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG") and drawn.get_facecolor()[3] == 0


def test_seeds_thin_and_their_mean_thick_over_the_gap(drawn):
    seeds, mean = drawn.axes[0].lines[:2], drawn.axes[0].lines[2]
    assert [line.get_ydata().tolist() for line in seeds] == [[-4.0, 0.1, 0.5], [-2.0, 0.3, 0.7]]
    assert mean.get_xdata().tolist() == [1, 2, 4] and mean.get_ydata() == pytest.approx([-3.0, 0.2, 0.6])
    assert mean.get_linewidth() > seeds[0].get_linewidth()


def test_held_out_problems_stand_apart(drawn):
    dots = [line for line in drawn.axes[0].lines if to_rgb(line.get_color()) == to_rgb(figures_ppo.HELD_OUT)]
    assert [line.get_ydata().tolist() for line in dots[:2]] == [[0.1, 0.3], [0.2, 0.1]]
    assert dots[2].get_ydata() == pytest.approx([0.15, 0.2])
    assert not [line for line in drawn.axes[1].lines if to_rgb(line.get_color()) == to_rgb(figures_ppo.HELD_OUT)]


def test_zero_and_the_line_to_pass_are_marked(drawn):
    for panel in drawn.axes:
        levels = [line.get_ydata()[0] for line in panel.lines if len(set(line.get_ydata())) == 1]
        assert 0 in levels and 0.2 in levels
    assert "0.2" in [text.get_text() for text in drawn.axes[0].texts]
    bare = figures_ppo.explained_variance(FRESH, HELD)
    assert "0.2" not in [text.get_text() for text in bare.axes[0].texts] and "above" not in style.alt_text(bare)


def test_what_lies_below_the_frame_is_told(drawn):
    assert [t.get_text() for t in drawn.axes[0].texts if "lowest" in t.get_text()] == ["lowest −4, at step 1"]
    assert not [t for t in drawn.axes[1].texts if "lowest" in t.get_text()]


def test_the_text_says_where_it_ends_and_in_how_many_seeds(drawn):
    text = style.alt_text(drawn)
    assert "PPO: on new batches from -3 to 0.6, at the end 0.2 on held-out problems [-1.1, 1.5]" in text
    assert "above 0.2 in 1 of 2 seeds" in text and text.endswith("IMAGINE (PPO): on new batches from 0 to 0.2.")


def test_a_lone_seed_and_a_run_without_critic():
    lone = figures_ppo.explained_variance((np.array([1]), {"ppo": np.array([[0.3]])}), (np.zeros(0), {}), line=0.2)
    assert len(lone.axes) == 1 and "from 0.3 to 0.3." in style.alt_text(lone)
    with pytest.raises(ConfigError, match="fresh"):
        figures_ppo.explained_variance((np.zeros(0), {}), (np.zeros(0), {}))
