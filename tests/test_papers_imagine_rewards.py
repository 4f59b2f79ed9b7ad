"""IMAGINE's scores as plain TRL reward functions, on the vectors and inside an unmodified trainer."""

import json
import math
from pathlib import Path

import pytest
import tiny_policy as tiny
import trl

from explorl.errors import ConfigError
from explorl.papers import imagine_rewards as rewards
from explorl.train import trainer
from explorl.train.config import TrainConfig, trl_config

VECTORS = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text())


@pytest.mark.parametrize("rules", ["strict", "lenient", "tinyzero"])
def test_countdown_vectors_through_the_reward_function(rules):
    cases = [case for case in VECTORS["countdown"] if isinstance(case[rules], float)]
    assert len(cases) > 80
    by_template = {}
    for case in cases:
        by_template.setdefault(case.get("template", "base"), []).append(case)
    for template, some in by_template.items():
        reward = rewards.countdown_reward(rules=rules, template={"qwen": "qwen-instruct"}.get(template, template))
        found = reward(completions=[c["response"] for c in some], numbers=[c["nums"] for c in some],
                       target=[c["target"] for c in some], prompts=["?"] * len(some))
        assert found == [c[rules] for c in some]


def test_gsm8k_vectors_through_the_reward_function():
    cases = VECTORS["gsm8k"]
    found = rewards.marked_reward("hash", rules="published")(
        completions=[c["response"] for c in cases], gold=[c["gold"] for c in cases])
    assert found == [c["score"] for c in cases]


def test_conversations_are_read():
    chat = [[{"role": "assistant", "content": "<answer>6*4</answer>"}], [{"role": "assistant", "content": None}]]
    assert rewards.countdown_reward()(completions=chat, numbers=[[6, 4]] * 2, target=[24] * 2) == [1.0, 0.0]


def test_an_unmodified_trainer_trains_on_it(tmp_path):
    config = TrainConfig(steps=2, prompts_per_step=2, group_size=3, max_completion_tokens=6, learning_rate=1e-3)
    data = trainer.dataset(tiny.problems(), config.prompts_needed, 0)
    data = data.add_column("numbers", [[6, 4]] * len(data)).add_column("target", [24] * len(data))
    scores = [rewards.countdown_reward(), rewards.marked_reward("hash")]
    alone = trl.GRPOTrainer(model=tiny.model(), reward_funcs=scores, processing_class=tiny.tokenizer(),
                            train_dataset=data, args=trl_config(config, tmp_path))
    alone.train()
    logged = [row for row in alone.state.log_history if "rewards/countdown_score/mean" in row]
    assert len(logged) == 2 and all(row["rewards/marked_score/mean"] == 0.0 for row in logged)


@pytest.mark.parametrize("make, field", [
    (lambda: rewards.countdown_reward(rules="lax"), "rules"),
    (lambda: rewards.countdown_reward(template="chat"), "template"),
    (lambda: rewards.marked_reward("box"), "form"), (lambda: rewards.marked_reward("hash", rules="lax"), "rules"),
    (lambda: rewards.marked_reward("hash")(completions=["a", "b"], gold=["1"]), "gold"),
    (lambda: rewards.countdown_reward()(completions=["a"], numbers=[], target=[1]), "numbers"),
])
def test_a_wrong_setting_or_column_is_named(make, field):
    with pytest.raises(ConfigError) as error:
        make()
    assert error.value.field == field


def test_lost_and_false_answers():
    texts = [f"<answer>{inner}" for inner in ("2+3*4</answer>\n", "2+3*4</answer>", "2.5*4</answer>",
                                              "99**98**97</answer>")]
    found = rewards.lost_answers(texts, [[2, 3, 4], [2, 3, 4], [2, 5, 4], [99, 98, 97]], [14, 14, 10, 50])
    assert found == {"lost": 0.25, "false": 0.25, "hangs": 0.25}
    assert math.isnan(rewards.lost_answers([], [], [])["lost"])
