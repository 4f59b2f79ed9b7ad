"""SD-E² against worked values: the 34 reward cases, the groups, the metrics, clip and KL, and wrong settings."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from explorl import encoders
from explorl.errors import ConfigError
from explorl.papers import sde2, sde2_objective
from explorl.papers.method import Batch
from explorl.papers.sde2 import SDE2, Config

VECTORS = json.loads((Path(__file__).parent / "vectors" / "sde2.json").read_text(encoding="utf-8"))
CASES = {case["name"]: case for case in VECTORS["cases"]}
OURS = {"lam_oc": "lambda_oc", "lam_re": "lambda_re", "gam_s": "gamma_s", "gam_a": "gamma_a", "gam_c": "gamma_c",
        "beta": "beta_cap"}
STAGE = {"R_oc": "oc", "R_re": "re", "R_fa": "fa", "R_sd": "sd", "R_cnt": "rd", "n": "n_strategies", "chi": "chi",
         "uniq": "uniq", "div": "div", "g": "g", "final": "final", "complete": "complete"}


def config_of(settings: dict) -> Config:
    values = {OURS.get(name, name): value for name, value in settings.items() if name != "w"}
    weights = dict(zip(("w_oc", "w_re", "w_fa", "w_sd"), settings.get("w", ()), strict=False))
    return Config(**values, **weights)


def table(embeddings: dict):
    """An encoder that looks vectors up."""
    return lambda texts: np.array([embeddings[text] for text in texts], dtype=np.float32)


def block(reasoning: str, outcome: str) -> str:
    return (f"<strategy><reasoning>{reasoning}</reasoning>"
            f"<strategy_outcome>{outcome}</strategy_outcome></strategy>")


def test_our_defaults_are_the_vectors_defaults():
    assert config_of(VECTORS["defaults"]) == Config()
    assert len(CASES) == 34


@pytest.mark.parametrize("name", CASES)
def test_reward_case(name):
    case = CASES[name]
    config, encode = config_of(case["cfg"]), table(case["embeddings"])
    found = sde2.stages(case["text"], case["y"], encode, config)
    for key, value in case["expect"].items():
        if key == "src":
            assert found.reading.parsed.source == value
        elif key == "f":
            assert found.reading.parsed.final == value
        elif key == "U":
            assert list(found.kept) == value
        else:
            assert getattr(found, STAGE[key]) == pytest.approx(value, abs=1e-12), key


def test_components_of_a_batch_are_the_stages_of_its_members():
    cases = [case for case in CASES.values() if not case["cfg"]]
    padded = {key: [*vector, 0, 0, 0, 0][:6] for key, vector in CASES["02a_one_wrong"]["embeddings"].items()}
    encode = table(padded | {f"e{i}": [float(i == j) for j in range(6)] for i in range(6)})
    found = sde2.components([c["text"] for c in cases], [c["y"] for c in cases], encode)
    for i, case in enumerate(cases):
        for key, value in case["expect"].items():
            if key in STAGE:
                assert found[STAGE[key]][i] == pytest.approx(value, abs=1e-12), (case["name"], key)
        one = sde2.stages(case["text"], case["y"], encode)
        assert all(found[key][i] == getattr(one, key) for key in found)


def test_the_whole_batch_is_embedded_in_one_call():
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return np.ones((len(texts), 2))

    sde2.components([block("a", "1") + block("b", "2"), "nothing", block("a", "3")], "1", encode)
    assert calls == [["a", "b", "a"]]
    sde2.components(["nothing"], "1", encode)
    assert len(calls) == 1, "nothing to embed, no call"


@pytest.mark.parametrize("case", VECTORS["zscore"], ids=lambda case: case["name"])
def test_zscores_and_advantages(case):
    config = Config(eps=case["eps"])
    raw = {name: np.array(case[name], dtype=float) for name in ("oc", "re", "fa", "sd")}
    for name, z in zip(raw, case["z"], strict=True):
        assert sde2.zscore(raw[name], config.eps) == pytest.approx(z, abs=1e-5)
    total = sde2.aggregate(raw, config, group_size=case["G"])
    assert total == pytest.approx(case["R"], abs=1e-5)
    assert sde2.group_advantages(total, case["G"], config).values == pytest.approx(case["A"], abs=1e-5)


def test_z5_the_wrong_final_answer_wins():
    texts = [CASES[name]["text"] for name in ("07_right_strategy_wrong_final", "07b_wrong_strategy_right_final")]
    method = SDE2(Config(), table(CASES["02a_one_wrong"]["embeddings"]))
    batch = Batch(prompts=["", ""], completions=texts, gold=["18", "18"], group_size=2)
    found = method.components(batch)
    total = method.aggregate(found, batch)
    assert found["oc"].tolist() == [0, 1] and total == pytest.approx([2, -2], abs=1e-4)
    assert method.advantages(total, found, batch).values == pytest.approx([1, -1], abs=1e-5)


def test_z6_a_solved_prompt_pays_for_one_more_block():
    solved = {"oc": np.ones(4), "re": np.ones(4), "sd": np.ones(4), "fa": np.array([0.8, 0.8, 0.8, 1.0])}
    advantages = sde2.group_advantages(sde2.aggregate(solved), 4, Config()).values
    assert advantages == pytest.approx([-0.577350] * 3 + [1.732049], abs=1e-5)


def test_the_branch_at_sigma_equal_eps_is_not_divided():
    assert sde2.zscore([0, 2], 1.0).tolist() == [-1, 1]
    assert sde2.zscore([0, 1], 0.4).tolist() == pytest.approx([-0.5 / 0.9, 0.5 / 0.9])
    assert sde2.zscore([]).shape == (0,)


def test_norm_scope_group_is_the_batch_of_each_group():
    raw = {name: np.array([1.0, 0.0, 5.0, 7.0]) for name in ("oc", "re", "fa", "sd")}
    by_group = sde2.aggregate(raw, Config(norm_scope="group"), group_size=2)
    halves = [sde2.aggregate({k: v[i : i + 2] for k, v in raw.items()}) for i in (0, 2)]
    assert by_group == pytest.approx(np.concatenate(halves))
    assert by_group != pytest.approx(sde2.aggregate(raw))
    with pytest.raises(ConfigError, match="group_size"):
        sde2.aggregate(raw, Config(norm_scope="group"))


def test_weights_matter_and_lambdas_do_not():
    raw = {"oc": np.array([1.0, 0, 0, 1]), "re": np.array([0.0, 1, 0, 1]), "fa": np.zeros(4), "sd": np.zeros(4)}
    plain = sde2.aggregate(raw)
    assert sde2.aggregate(raw | {"oc": 10 * raw["oc"]}) == pytest.approx(plain, abs=1e-4)
    assert sde2.aggregate(raw, Config(w_oc=2.0)) == pytest.approx(plain + sde2.zscore(raw["oc"]))
    assert sde2.aggregate({"oc": raw["oc"]}, Config(w_re=0, w_fa=0, w_sd=0)) == pytest.approx(sde2.zscore(raw["oc"]))
    with pytest.raises(ConfigError, match="sd"):
        sde2.aggregate({"oc": raw["oc"], "re": raw["re"], "fa": raw["fa"]})


def test_metrics():
    expect = VECTORS["metrics"]
    cases = [CASES[name] for name in expect["cases"]]
    found = sde2.components([c["text"] for c in cases], "18", table(cases[0]["embeddings"]), lengths=[1, 2, 3, 6])
    metrics = sde2.metrics(found)
    named = {"ACC_strict": "ACC_strict", "ACC_fallback": "ACC_fallback", "S-ACC": "SACC", "STR": "STR",
             "RR": "RR_macro", "RR_micro": "RR_micro", "uniqueness": "Uniqueness_macro"}
    for ours, theirs in named.items():
        assert metrics[ours] == pytest.approx(expect[theirs], abs=1e-12), ours
    assert found["uniq_eval"].tolist() == expect["uniq"]
    assert metrics["TOK"] == 3.0
    assert metrics["S-ACC_by_chance"] == pytest.approx(100 * (1 - 0.75**1.5))
    assert metrics["RR_solved"] == pytest.approx(1 / 6) and metrics["RR_unsolved"] == 0.0


def test_metrics_measure_redundancy_at_one_delta_whatever_the_training_delta():
    case = CASES["03a_near_duplicate"]
    found = sde2.components([case["text"]], "18", table(case["embeddings"]), Config(delta=0.97))
    assert found["uniq"].tolist() == [2] and found["uniq_eval"].tolist() == [1]
    assert sde2.metrics(found)["RR"] == 0.5


def test_metrics_without_completions_or_encoder():
    empty = sde2.metrics(sde2.components([], [], encoders.load("constant")))
    assert all(np.isnan(value) for value in empty.values())
    assert "RR" not in sde2.metrics(sde2.components(["x"], "1", None))


def test_clip_and_kl():
    for ratio, advantage, epsilon, value in VECTORS["clip"]:
        assert sde2_objective.clip_term(ratio, advantage, epsilon) == pytest.approx(value, abs=1e-12)
    kl = VECTORS["kl"]
    p, q = np.log(kl["p"]), np.log(kl["q"])
    assert sde2_objective.kl_exact(p, q) == pytest.approx(kl["kl"], abs=1e-12)
    assert sde2_objective.kl_k3(p, q) == pytest.approx(kl["k3"], abs=1e-12)
    assert np.dot(np.exp(p), sde2_objective.kl_k3(p, q)) == pytest.approx(kl["kl"], abs=1e-12)


# ── Readings of the paper and hardening ──

TWO = block("honest reasoning", "18") + block("x", "20")


def basis(texts):
    """Every text its own direction."""
    return encoders.load("random")(texts)


def test_single_div_and_the_zero_vector():
    assert sde2.div([[2, 0]], single_div=0.25) == 0.25
    assert sde2.pairwise_cosine([[0, 0], [1, 0]]).tolist() == [[0, 0], [0, 1]]
    assert sde2.novelty([[0, 0], [1, 0]]) == 2.0 and sde2.novelty([]) == 0.0


def test_rounding_does_not_decide_a_tie():
    rounded = [[1, 0], [0.8 + 4e-8, 0.6]]  # 4/5 as float32 may have it
    assert sde2.uniq(rounded, 0.8) == [0, 1]
    assert sde2.uniq(rounded, 0.8, tie_tol=0) == [0]
    assert sde2.uniq([[1, 0], [0.8 - 4e-8, 0.6]], 0.8, delta_inclusive=False) == [0]


def test_min_reasoning_chars_takes_short_reasonings_out_of_diversity_only():
    found = sde2.stages(TWO, "1", basis, Config(min_reasoning_chars=5))
    assert (found.n_strategies, found.m_eff, found.uniq) == (2, 1, 1)


def test_relevance_floor_drops_what_is_far_from_the_prompt():
    encode = table({"q": [1, 0], "near": [4, 3], "far": [0, 1]})
    text = block("far", "20") + block("near", "21")
    config = Config(relevance_floor=0.5)
    found = sde2.stages(text, "18", encode, config, prompt="q")
    assert (found.n_strategies, found.m_eff, found.reading.reasonings) == (2, 1, ["near"])
    assert sde2.stages(text, "18", encode, prompt="q").m_eff == 2
    with pytest.raises(ConfigError, match="prompts"):
        sde2.components([text], "18", encode, config)
    batch = Batch(prompts=["q", "q"], completions=[text, "none"], gold=["18", "18"], group_size=2)
    assert SDE2(config, encode).components(batch)["m_eff"].tolist() == [1, 0]


def test_chi_with_final_wants_the_final_answer_right_too():
    lucky, honest = TWO + "<final_answer>20</final_answer>", TWO + "<final_answer>18</final_answer>"
    strict = Config(chi_mode="with_final")
    assert [sde2.stages(t, "18", basis, strict).chi for t in (lucky, honest)] == [0, 1]
    assert sde2.stages(lucky, "18", basis).chi == 1


def test_choice_mode_compares_letters():
    text = block("the others are ruled out", "(b) Aspirin") + "<final_answer>B</final_answer>"
    assert sde2.stages(text, "B", basis, Config(canon="choice")).oc == 1.0
    assert sde2.stages(text, "C", basis, Config(canon="choice")).chi == 0


def test_num_pick_reaches_the_comparison():
    text = "<final_answer>18 out of 20</final_answer>"
    assert sde2.stages(text, "20", basis).oc == 1.0
    assert sde2.stages(text, "20", basis, Config(num_pick="single")).oc == 0.0


def test_max_strategies_keeps_the_first():
    found = sde2.stages(TWO, "20", basis, Config(max_strategies=1))
    assert (found.n_strategies, found.chi) == (1, 0)


def test_diagnostics():
    many = "".join(block(f"way {i}", str(20 + i)) for i in range(6))
    found = sde2.components([many, TWO, block("a", "20"), "none"], "18", basis)
    assert found["saturated"].tolist() == [1, 0, 0, 0]
    assert found["n_outcomes"].tolist() == [6, 2, 1, 0]
    assert [sde2.SOURCES[int(code)] for code in found["source"]] == ["SO", "SO", "SO", "NONE"]
    close = table({"a": [1, 0], "b": [4, 3]})
    pair = block("a", "20") + block("b", "21")
    assert sde2.components([pair], "18", close)["valley"].tolist() == [1]
    assert sde2.components([pair], "21", close)["valley"].tolist() == [0], "not exploring"


def test_only_so_many_strategies_are_embedded():
    text = "".join(block(f"way {i}", str(i)) for i in range(sde2.MAX_EMBEDDED + 5))
    found = sde2.stages(text, "18", basis)
    assert found.m_eff == sde2.MAX_EMBEDDED and found.n_strategies == sde2.MAX_EMBEDDED + 5


# ── Wrong settings and inputs ──

@pytest.mark.parametrize(("field", "value"), [
    ("w_oc", float("nan")), ("w_sd", float("inf")), ("w_fa", -1.0), ("lambda_oc", "1"), ("rho", True),
    ("alpha", 0.5), ("beta_cap", 1.5), ("delta", 0.0), ("delta", 1.0), ("delta", float("nan")), ("delta_eval", 2),
    ("eps", 0.0), ("single_div", 1.1), ("dup_key", "text"), ("uniq_against", "all"), ("canon", "fuzzy"),
    ("num_pick", "first"), ("norm_scope", "global"), ("re_mode", "x"), ("chi_mode", "x"), ("max_strategies", 0),
    ("max_strategies", 2.0), ("min_reasoning_chars", -1), ("relevance_floor", 1.5), ("final_requires_tag", 1),
])
def test_a_wrong_setting_is_named(field, value):
    with pytest.raises(ConfigError) as caught:
        Config(**{field: value})
    assert caught.value.field in (field, "alpha") and caught.value.allowed


def test_every_setting_is_checked():
    for item in dataclasses.fields(Config):
        with pytest.raises(ConfigError):
            Config(**{item.name: object()})


@pytest.mark.parametrize("gold", ["", " ", None, 18, ["18"], ["18", ""], ["18", None], [["1"], "2"], {"a": "18"}])
def test_a_missing_reference_answer_is_named(gold):
    with pytest.raises(ConfigError, match="gold"):
        sde2.components(["a", "b"], gold, basis)


def test_a_group_of_one_has_no_advantage():
    batch = Batch(prompts=[""], completions=["x"], gold=["1"], group_size=1)
    with pytest.raises(ConfigError, match="group_size"):
        SDE2(Config(), basis).advantages(np.zeros(1), {}, batch)


@pytest.mark.parametrize("encode", [lambda texts: np.zeros(3), lambda texts: np.full((len(texts), 2), np.nan),
                                    lambda texts: np.zeros((1, 2))])
def test_a_broken_encoder_is_named(encode):
    with pytest.raises(ConfigError, match="encode"):
        sde2.components([TWO], "18", encode)


def test_advantages_without_division():
    batch = Batch(prompts=[""] * 4, completions=["x"] * 4, gold=["1"] * 4, group_size=2)
    method = SDE2(Config(adv_std=False), basis)
    assert method.advantages(np.array([1.0, 3.0, 0.0, 0.0]), {}, batch).values.tolist() == [-1, 1, 0, 0]


# ── As a TRL reward function ──

def test_reward_function_is_the_batchs_total():
    texts, gold = [TWO, "none", block("a", "18"), TWO], ["18", "18", "18", "20"]
    reward = sde2.reward_function(Config(), basis)
    given = reward(prompts=["p"] * 4, completions=texts, gold=gold, completion_ids=[[1]] * 4, trainer_state=None)
    assert given == sde2.aggregate(sde2.components(texts, gold, basis)).tolist()
    assert all(type(value) is float for value in given) and reward.__name__ == "sde2"
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    assert reward(prompts=[[{"role": "user", "content": "p"}]] * 4, completions=chats, gold=gold) == given


def test_lengths_come_back_through_the_method():
    batch = Batch(prompts=["", ""], completions=["x", TWO], gold=["1", "1"], group_size=2,
                  completion_ids=[[1, 2], [3]])
    assert SDE2(Config(), basis).components(batch)["length_tokens"].tolist() == [2, 1]


def test_the_reward_function_reads_odd_completions_and_names_a_missing_gold_column():
    reward = sde2.reward_function(Config(), basis)
    assert reward(completions=[None, 7, [None], [{"role": "assistant"}]], gold=["18"] * 4) == [0.0] * 4
    with pytest.raises(ConfigError, match="gold = None: must be a column"):
        reward(completions=["x"])
