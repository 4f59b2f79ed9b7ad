"""EMPO's parameters: the fields of its own, the rules that join them, and the settings they make."""

import pytest

from explorl import params
from explorl.params import ParamsError
from explorl.papers import empo


@pytest.mark.parametrize("changes, field, hint", [
    ({"delta_low_nats": 1.0, "delta_high_nats": 0.5}, "delta_high_nats", "above delta_low_nats = 1.0"),
    ({"eval_tasks": ["amc23"]}, "eval_tasks", "empty for digits"),
    ({"blank": "minus_half", "arms": ["empo_log"]}, "blank", "zero or share with the arm empo_log"),
    ({"equality": "verifier"}, "equality", "for the toy policy"),
    ({"start": "left"}, "start", "one of right, wrong, habits"),
    ({"eval_tasks": ["amc24"]}, "eval_tasks", "each one of math500"),
    ({"arms": ["sde2"]}, "arms", "each one of base, empo"),
    ({"delta": 0.8}, "delta", "a known name"),
])
def test_a_wrong_value_is_named(changes, field, hint):
    with pytest.raises(ParamsError) as error:
        params.load("empo", "smoke", **changes)
    problem = next(p for p in error.value.problems if p.field.split("[")[0] == field)
    assert hint in problem.allowed


def test_the_settings_reach_the_reward():
    values = params.load("empo", "smoke", blank="share", gate="frequency", min_share=0.5, adv_clip=2.0)
    config = values.empo_config(reward="log_p")
    assert config == empo.Config(reward="log_p", blank="share", gate="frequency", min_share=0.5, adv_clip=2.0,
                                 answer_from="final_tag")


def test_there_is_no_kl_by_default():
    assert params.load("empo", "smoke").train_config(0).beta_kl == 0.0


def test_the_modules_that_parameters_choose():
    assert params.load("empo", "smoke").chosen_modules == ("tasks.digits",)
    chosen = params.load("empo", "t4").chosen_modules
    assert "tasks.numina" in chosen and "judges" not in chosen
    assert "judges" in params.load("empo", "table2_qwen25_3b_empo").chosen_modules
