"""EMPO against its test vectors: clusters, entropy, gate, reward, advantage; then every reading and wrong setting."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from explorl.errors import ConfigError
from explorl.papers import empo, empo_metrics, empo_variants
from explorl.papers.empo import EMPO, Config
from explorl.papers.method import Batch
from explorl.text import equivalence

VECTORS = json.loads((Path(__file__).parent / "vectors" / "empo.json").read_text(encoding="utf-8"))
GROUPS = {case["name"].split()[0]: case for case in VECTORS["groups"]}
MATH = equivalence.load("math")
each_group = pytest.mark.parametrize("name", GROUPS)


def same(a: str, b: str) -> bool:
    return a == b


def of_sizes(*sizes: int) -> list[str]:
    """Answers of a group with clusters of these sizes."""
    return [str(number) for number, size in enumerate(sizes) for _ in range(size)]


def spelled(answers: list[str], ids: list[int]) -> list[str]:
    """Answers that fall into these clusters by plain comparison; blanks stay blank."""
    return [f"meaning {number}" if answer.strip() else "" for answer, number in zip(answers, ids, strict=True)]


def boxed(*answers: str, prompt: str = "q", gold: str = "", group_size: int | None = None, step: int = 0) -> Batch:
    n = len(answers)
    texts = [rf"so \boxed{{{answer}}}" if answer else "no idea" for answer in answers]
    return Batch([prompt] * n, texts, [gold] * n, group_size or n, step=step)


# ── The vectors ──

def test_the_vectors_are_all_there():
    assert len(GROUPS) == 32 and VECTORS["math_verify"] == "0.9.0"


@each_group
def test_group(name):
    case, expect = GROUPS[name], GROUPS[name]["both"]
    answers = case["answers"]
    paid, ids, entropy, keep = empo.rewards(answers, MATH)
    assert ids == expect["ids"] and keep is expect["keep"]
    assert entropy == pytest.approx(expect["H"], abs=1e-12)
    assert paid == pytest.approx(expect["reward"], abs=1e-12)
    assert empo.normalise(paid, len(answers)) == pytest.approx(expect["adv"], abs=1e-9)

    found = empo.cluster(answers, MATH)
    assert [found.p[found.ids.index(c)] for c in range(found.n_clusters)] == pytest.approx(expect["p"])
    assert empo.reward(found) == pytest.approx(expect["raw"], abs=1e-12)
    assert found.majority.tolist() == case["majority"]


@each_group
def test_one_way_equality_gives_the_vectors_one_way_partition(name):
    case = GROUPS[name]
    ids = empo.rewards(case["answers"], equivalence.load("math_one_way"))[1]
    assert ids == case["forward_ids"]


PUBLISHED = {"trl_head": "exact", "trl_first_release": "math_one_way", "verl_head": "loose"}


@each_group
@pytest.mark.parametrize("variant", PUBLISHED)
def test_published_rewards_on_the_published_partition(name, variant):
    case, official = GROUPS[name], GROUPS[name]["official"]
    ids = official[f"{variant}_ids"]
    paid, found = getattr(empo_variants, variant)(spelled(case["answers"], ids), same)
    assert found == ids and paid == pytest.approx(official[f"{variant}_reward"], abs=1e-12)


@each_group
@pytest.mark.parametrize("variant", ["trl_head", "trl_first_release"])
def test_published_partitions_from_the_answers_themselves(name, variant):
    case = GROUPS[name]
    equal = equivalence.load(PUBLISHED[variant])
    paid, found = getattr(empo_variants, variant)(case["answers"], equal)
    assert found == case["official"][f"{variant}_ids"]
    assert paid == pytest.approx(case["official"][f"{variant}_reward"], abs=1e-12)


@each_group
def test_published_vote(name):
    case = GROUPS[name]
    paid, _ = empo_variants.verl_voting(spelled(case["answers"], case["official"]["verl_head_ids"]), same)
    assert paid.tolist() == case["official"]["verl_head_voting"]


@pytest.mark.parametrize("case", VECTORS["gold_reward"], ids=lambda case: case["gold"])
def test_gold_reward(case):
    method = EMPO(Config(), MATH, gold_equal=equivalence.load("math_one_way"))
    batch = boxed(*case["answers"], gold=case["gold"])
    assert method.components(batch)["oc"].tolist() == case["reward"]


def test_rounding_opens_the_published_gate_and_not_ours():
    leaking = [3, 6, 7, 10, 14, 21, 22, 24, 25, 28, 29, 30, 39]
    different = {size: of_sizes(*[1] * size) for size in range(1, 40)}
    assert [size for size, group in different.items() if empo_variants.trl_head(group, same)[0].any()] == leaking
    for size, group in different.items():
        found = empo.cluster(group, same)
        assert empo.gate(found) != "kept"
        assert empo.gate(found, Config(delta_high_nats=math.log(size) or 1.0)) != "kept", "ln G as a number"
    with_blank = ["1", "2", "3", "4", "5", "6", ""]
    assert empo.normalise(empo_variants.trl_head(with_blank, same)[0], 7).any(), "published: it trains"
    assert not empo.normalise(empo.rewards(with_blank, same)[0], 7).any()


# ── The natural-reasoning reward of the published code (sheet §6.7) ──

QUESTION = "Where is the capital of France, London or Lyon?"


def case_blind(a: str, b: str) -> bool:
    a, b = (text.lower().removeprefix("the city of ") for text in (a, b))
    return a == b


@pytest.mark.parametrize("answers, expect", [
    (["Paris", "The city of Paris", "Lyon", "", "Rome", "Paris"], [0.5, 0.5, 0, -0.5, 1 / 6, 0.5]),
    (["Lyon", "Lyon", "Lyon", "Rome", "Paris", "Paris"], [0, 0, 0, 1 / 6, 1 / 3, 1 / 3]),
    (["one", "two", "three", "four", "five", "six"], [0] * 6),
    (["Paris", "Rome", "", "", "", ""], [0, 0, -0.5, -0.5, -0.5, -0.5]),
    ([""] * 6, [-0.5] * 6),
])
def test_natural_reward(answers, expect):
    assert empo_variants.natural_official(answers, case_blind, QUESTION)[0] == pytest.approx(expect)


def test_an_answer_of_the_questions_words_in_order_is_a_copy():
    assert empo_variants.copies("The capital of France: London", QUESTION)
    assert empo_variants.copies("is the capital of France London, Rome", QUESTION), "six of seven words in order"
    assert not empo_variants.copies("the capital of France is Paris", QUESTION), "four of six"
    assert not empo_variants.copies("!?", QUESTION)


def test_published_metrics_of_a_group_whose_majority_is_wrong():
    answers = ["7", "7", "7", "3", "3", "5", "", ""]
    assert empo_variants.verl_head(answers, same)[0].tolist() == [0.375] * 3 + [0.25] * 2 + [0.125] * 3
    assert empo_variants.verl_voting(answers, same)[0].tolist() == [1] * 3 + [0] * 5
    right = EMPO(Config(), same).components(boxed(*answers, gold="3"))["oc"]
    assert right.tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    found = empo_metrics.measure(answers, right, same)
    assert (found.majority_right, found.p_majority, found.accuracy) == (False, 0.375, 0.25)


def test_the_loose_grader_merges_different_integers_and_calls_the_label_right():
    loose, answers = equivalence.load("loose"), [str(n) for n in range(20, 26)]
    assert empo_variants.verl_head(answers, loose)[0].tolist() == [1] * 6
    right = EMPO(Config(gate="none"), loose).components(boxed(*answers, gold="25"))["oc"]
    assert right.tolist() == [1, 0, 0, 0, 0, 1]
    assert empo_metrics.measure(answers, right, loose).majority_right, "the label is 20"


# ── Entropies and closed forms (sheet §6.4) ──

@pytest.mark.parametrize("sizes, entropy, collision", [
    ((4,), 0, 1), ((3, 1), 0.562335, 0.625), ((2, 2), 0.693147, 0.5), ((2, 1, 1), 1.039721, 0.375),
    ((1, 1, 1, 1), 1.386294, 0.25), ((8,), 0, 1), ((7, 1), 0.376770, 0.78125), ((6, 2), 0.562335, 0.625),
    ((5, 3), 0.661563, 0.53125), ((4, 4), 0.693147, 0.5), ((4, 3, 1), 0.974315, 0.40625),
    ((4, 2, 2), 1.039721, 0.375), ((4, 2, 1, 1), 1.213008, 0.34375), ((4, 1, 1, 1, 1), 1.386294, 0.3125),
    ((3, 3, 2), 1.082196, 0.34375), ((3, 3, 1, 1), 1.255482, 0.3125), ((3, 2, 2, 1), 1.320888, 0.28125),
    ((2, 2, 2, 2), 1.386294, 0.25), ((2, 1, 1, 1, 1, 1, 1), 1.906155, 0.15625), ((1,) * 8, 2.079442, 0.125),
])
def test_entropy_and_mean_reward_of_partitions(sizes, entropy, collision):
    found = empo.cluster(of_sizes(*sizes), same)
    assert found.entropy_nats == pytest.approx(entropy, abs=1e-6)
    assert empo.reward(found).mean() == pytest.approx(collision, abs=1e-12)


ADVANTAGES = [
    ((4, 2, 1, 1), (0.899585, -0.539751, -1.259419, -1.259419), (0.900098, -0.540059, -1.260137, -1.260137),
     (0.846, -0.282, -1.41, -1.41)),
    ((5, 3), (0.724009, -1.206682), (0.724563, -1.207605), (0.7243, -1.2072)),
    ((7, 1), (0.353420, -2.473941), (0.353552, -2.474864), (0.3535, -2.4745)),
    ((15, 1), (0.249886, -3.748286), (0.249999, -3.749983), (0.2500, -3.7494)),
    ((4, 4), (0, 0), (0, 0), (0, 0)), ((8, 8), (0, 0), (0, 0), (0, 0)),
    ((3, 3, 2), (0.539130, 0.539130, -1.617390), (0.540052, 0.540052, -1.620157), (0.5398, 0.5398, -1.6193)),
    ((2, *[1] * 14), (2.549794, *[-0.364256] * 14), (2.561618, *[-0.365945] * 14), (2.5607, *[-0.3658] * 14)),
]


@pytest.mark.parametrize("sizes, plain, small_eps, log_p", ADVANTAGES, ids=lambda value: str(value)[:12])
def test_closed_forms_of_the_advantage(sizes, plain, small_eps, log_p):
    group = of_sizes(*sizes)
    for config, expect, tolerance in ((Config(), plain, 1e-6), (Config(adv_eps=1e-6), small_eps, 1e-6),
                                      (Config(reward="log_p"), log_p, 5e-4)):
        advantages = empo.normalise(empo.rewards(group, same, config)[0], len(group), config)
        assert advantages == pytest.approx(np.repeat(expect, sizes), abs=tolerance)


def test_two_clusters_have_a_closed_form():
    for size, major in ((8, 5), (8, 7), (16, 15), (12, 7)):
        f, factor = major / size, math.sqrt((size - 1) / size)
        config = Config(adv_eps=1e-12)
        found = empo.normalise(empo.rewards(of_sizes(major, size - major), same)[0], size, config)
        assert found[0] == pytest.approx(math.sqrt((1 - f) / f) * factor)
        assert found[-1] == pytest.approx(-math.sqrt(f / (1 - f)) * factor)


# ── Degenerate cases (sheet §6.5) ──

@pytest.mark.parametrize("answers, code", [
    (["7"] * 8, "unanimous"), (["1", "2", "3"], "all_different"), (["1", "2", "3", "4", "5", "6", ""], "all_different"),
    ([""] * 4, "all_different"), (["7"], "alone"), ([""], "alone"), (["7"] * 4 + ["3"] * 4, "kept"),
    (["7", "", "", "7"], "kept"),
])
def test_degenerate_groups_teach_nothing(answers, code):
    assert empo.gate(empo.cluster(answers, same)) == code
    for gate in ("entropy", "none"):
        config = Config(gate=gate, blank="share")
        advantages = empo.normalise(empo.rewards(answers, same, config)[0], len(answers), config)
        assert not advantages.any() or (code == "kept" and "" in answers)
        assert np.isfinite(advantages).all()


@pytest.mark.parametrize("size", [1, 3, 7, 12])
def test_rewards_that_differ_by_rounding_give_exact_zeros(size):
    nearly = 4 / 12 + 5e-11 * np.arange(size)
    assert empo.normalise(nearly, size, Config(adv_eps=1e-12)).tolist() == [0.0] * size
    assert size == 1 or empo.normalise(100 * nearly, size, Config(adv_eps=1e-12)).any()


# ── The readings ──

def test_what_a_blank_earns():
    answers = ["7", "7", "3", ""]
    for blank, expect in (("zero", 0.0), ("share", 0.25), ("minus_half", -0.5)):
        assert empo.rewards(answers, same, Config(blank=blank))[0].tolist() == [0.5, 0.5, 0.25, expect]
    for blank in ("zero", "share"):
        paid = empo.rewards(answers, same, Config(reward="log_p", blank=blank))[0]
        assert paid == pytest.approx(np.log([0.5, 0.5, 0.25, 0.25])), "never the largest reward of the group"


def test_thresholds_are_open_bounds_in_nats():
    even, uneven = empo.cluster(of_sizes(4, 4), same), empo.cluster(of_sizes(7, 1), same)
    assert empo.gate(even, Config(delta_low_nats=math.log(2))) == "entropy_low"
    assert empo.gate(even, Config(delta_high_nats=math.log(2))) == "entropy_high"
    assert empo.gate(even, Config(delta_low_nats=0.69, delta_high_nats=0.70)) == "kept"
    assert empo.gate(uneven, Config(delta_low_nats=0.4)) == "entropy_low"
    assert empo.gate(empo.cluster(of_sizes(1, 1), same), Config(delta_high_nats=math.log(2))) == "entropy_high"
    assert empo.gate(empo.cluster(of_sizes(1, 1), same), Config(delta_high_nats=2.0)) == "kept", "ln G is not asked"


def test_the_frequency_gate_keeps_unanimity():
    config = Config(gate="frequency")
    kept = [empo.gate(empo.cluster(of_sizes(*sizes), same), config) for sizes in ((4, *[1] * 12), (3, *[1] * 13), (8,))]
    assert kept == ["kept", "share_low", "kept"]
    assert empo.gate(empo.cluster(of_sizes(1, 1), same), Config(gate="frequency", min_share=0.6)) == "share_low"


def test_the_rule_reaches_the_clusters():
    bridge = GROUPS["V02"]["answers"]
    found = {rule: empo.rewards(bridge, MATH, Config(rule=rule))[1] for rule in ("first_match", "last_match", "connected")}
    assert found == {"first_match": [0, 1, 0, 0, 1], "last_match": [0, 1, 1, 0, 1], "connected": [0] * 5}


def test_the_advantage_clip_bounds_a_lone_dissenter():
    paid = empo.rewards(of_sizes(15, 1), same)[0]
    assert empo.normalise(paid, 16, Config(adv_clip=2.0))[-1] == -2.0
    assert empo.normalise(paid, 16, Config(adv_clip=2.0))[0] == empo.normalise(paid, 16)[0]
    assert empo.normalise(paid, 16)[-1] == pytest.approx(-15 / 4, abs=0.002)


def test_the_printed_clip_clips_nothing():
    """min(A, clip(1, 1 − ε, 1 + ε) A) of eq 1 and 7."""
    advantages = empo.normalise(empo.rewards(of_sizes(15, 1), same)[0], 16)
    assert np.minimum(advantages, np.clip(1.0, 0.8, 1.2) * advantages).tolist() == advantages.tolist()


@pytest.mark.parametrize("place, text, answer", [
    ("boxed", r"first \boxed{1} then \boxed{2}", "2"), ("boxed", "<final_answer>3</final_answer>", ""),
    ("final_tag", "<final_answer>3</final_answer>", "3"), ("final_tag", "<answer>4</answer>", "4"),
    ("final_tag", r"\boxed{5}", ""), ("anywhere", r"\boxed{5}", "5"), ("anywhere", "it is 6", "6"),
    ("final_tag", "<strategy><reasoning>r</reasoning><strategy_outcome>7</strategy_outcome></strategy>", ""),
    ("boxed", None, ""), ("anywhere", "", ""),
])
def test_where_the_answer_is(place, text, answer):
    assert empo.read(text, Config(answer_from=place)) == answer


@pytest.mark.parametrize("case", VECTORS["extract"], ids=lambda case: case["text"])
def test_extraction(case):
    assert empo.read(case["text"]) == case["answer"]


# ── As a method ──

def test_components_of_a_batch_are_those_of_its_groups():
    batch = boxed("7", "7", "3", "", "1", "2", "3", "4", gold="3", group_size=4)
    method = EMPO(Config(), same)
    found = method.components(batch)
    assert found["reward"].tolist() == [0.5, 0.5, 0.25, 0, 0, 0, 0, 0]
    assert found["kept"].tolist() == [1] * 4 + [0] * 4
    assert found["p"].tolist() == [0.5, 0.5, 0.25, 0.25] + [0.25] * 4
    assert found["cluster"].tolist() == [0, 0, 1, 2, 0, 1, 2, 3]
    assert found["n_clusters"].tolist() == [3] * 4 + [4] * 4
    assert found["blank"].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert found["majority"].tolist() == [1, 1, 0, 0, 1, 0, 0, 0]
    assert found["entropy_nats"] == pytest.approx([1.0397] * 4 + [1.3863] * 4, abs=1e-4)
    assert found["oc"].tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    assert set(found) == {"reward", "p", "entropy_nats", "kept", "cluster", "n_clusters", "blank", "majority", "oc"}
    total = method.aggregate(found, batch)
    assert total.tolist() == found["reward"].tolist()


@pytest.mark.parametrize("filtered, keep", [("drop", [True] * 4 + [False] * 4), ("zero", None)])
def test_a_group_outside_the_gate_is_dropped_or_counted_with_zero(filtered, keep):
    batch = boxed("7", "7", "3", "", "1", "2", "3", "", group_size=4)
    method = EMPO(Config(filtered=filtered), same)
    found = method.components(batch)
    advantages = method.advantages(method.aggregate(found, batch), found, batch)
    assert (None if advantages.keep is None else advantages.keep.tolist()) == keep
    assert advantages.values[:4].any() and not advantages.values[4:].any()


def test_without_a_gate_the_same_group_teaches():
    batch = boxed("1", "2", "3", "", group_size=4)
    method = EMPO(Config(gate="none"), same)
    found = method.components(batch)
    advantages = method.advantages(method.aggregate(found, batch), found, batch)
    assert advantages.values == pytest.approx([0.5, 0.5, 0.5, -1.5], abs=0.01) and advantages.keep.all()


def test_the_reference_is_never_in_the_reward():
    answers = ["7", "7", "3", "5"]
    with_gold, without = (EMPO(Config(), same).components(boxed(*answers, gold=gold)) for gold in ("3", ""))
    assert with_gold["oc"].tolist() == [0, 0, 1, 0] and "oc" not in without
    for name in without:
        assert without[name].tolist() == with_gold[name].tolist()


def test_some_references_are_missing():
    batch = Batch(["p"] * 2, [r"\boxed{3}"] * 2, ["3", " "], 2)
    assert np.array_equal(EMPO(Config(), same).components(batch)["oc"], [1, np.nan], equal_nan=True)


def test_the_reference_comes_first_and_each_answer_is_compared_once():
    calls = []

    def gold_equal(gold, answer):
        calls.append((gold, answer))
        return gold == answer

    found = EMPO(Config(), same, gold_equal).components(boxed("7", "7", "3", "", gold="3"))
    assert calls == [("3", "7"), ("3", "3")] and found["oc"].tolist() == [0, 0, 1, 0]


class Judge:
    """Takes note of the questions it is given."""

    def __init__(self, asked, question=""):
        self.asked, self.question = asked, question

    def about(self, question):
        return Judge(self.asked, question)

    def __call__(self, a, b):
        self.asked.append(self.question)
        return a == b


def test_a_judge_hears_its_groups_question():
    asked = []
    batch = Batch(["one", "one", "two", "two"], [rf"\boxed{{{i}}}" for i in range(4)], [""] * 4, 2)
    EMPO(Config(), Judge(asked)).components(batch)
    assert asked == ["one", "two"]


def test_names_of_the_arms_and_an_empty_batch():
    assert EMPO(Config(), same).name == "empo" and EMPO(Config(reward="log_p"), same).name == "empo_log"
    nothing = EMPO(Config(), same).components(Batch([], [], [], 4))
    assert nothing and all(column.shape == (0,) for column in nothing.values())


# ── As a TRL reward function ──

def test_reward_function_finds_the_groups():
    texts = [rf"\boxed{{{x}}}" for x in ("7", "7", "3", "1", "1", "2")]
    prompts = ["a"] * 3 + ["b"] * 3
    reward = empo.reward_function(Config(), same)
    given = reward(prompts=prompts, completions=texts, completion_ids=[[1]] * 6, trainer_state=None, gold=["1"] * 6)
    assert given == pytest.approx([2 / 3, 2 / 3, 1 / 3] * 2) and all(type(value) is float for value in given)
    assert reward.__name__ == "empo"
    chats = [[{"role": "assistant", "content": text}] for text in texts]
    asked = [[{"role": "user", "content": prompt}] for prompt in prompts]
    assert reward(prompts=asked, completions=chats) == given
    repeated = empo.reward_function(Config(), same, group_size=3)
    assert repeated(prompts=["a"] * 6, completions=texts) == given
    with pytest.raises(ConfigError, match="prompts"):
        reward(completions=texts)


# ── Wrong settings ──

@pytest.mark.parametrize("field, value", [
    ("reward", "q"), ("rule", "any"), ("blank", 0), ("gate", None), ("delta_low_nats", -0.1),
    ("delta_low_nats", math.nan), ("delta_high_nats", 0.0), ("delta_high_nats", math.inf), ("min_share", 1.5),
    ("min_share", -1), ("filtered", "keep"), ("adv_eps", 0.0), ("adv_clip", 0.0), ("adv_clip", -1),
    ("answer_from", "tags"), ("adv_eps", True),
])
def test_a_wrong_setting_is_named(field, value):
    with pytest.raises(ConfigError) as caught:
        Config(**{field: value})
    assert caught.value.field == field and caught.value.allowed


def test_every_setting_is_checked():
    for item in dataclasses.fields(Config):
        with pytest.raises(ConfigError):
            Config(**{item.name: object()})


def test_settings_that_contradict_each_other():
    with pytest.raises(ConfigError, match="delta_high_nats = 0.5: must be above delta_low_nats"):
        Config(delta_low_nats=0.5, delta_high_nats=0.5)
    with pytest.raises(ConfigError, match="blank = 'minus_half'"):
        Config(reward="log_p", blank="minus_half")


def test_what_is_no_equality_and_no_group():
    with pytest.raises(ConfigError, match="equal"):
        EMPO(Config(), "math")
    with pytest.raises(ConfigError, match="gold_equal"):
        EMPO(Config(), same, "math")
    with pytest.raises(ConfigError, match="answers"):
        empo.rewards([], same)
    with pytest.raises(ConfigError, match="group_size"):
        empo.reward_function(Config(), same, group_size=0)


class Budgeted:
    """An equality that opens a view per group and can say why it gave up."""

    def __init__(self, views, number=0):
        self.views, self.number = views, number

    def bucket(self, answer):
        return None

    def group(self):
        if self.number:
            return self
        self.views.append([])
        return Budgeted(self.views, len(self.views))

    def __call__(self, a, b):
        self.views[self.number - 1].append((a, b))
        return a == b

    def reason(self, answer):
        return "slow" if answer == "9^9^9" else "ok"


def test_each_group_has_a_budget_for_its_clusters_and_one_for_its_references():
    views = []
    batch = boxed("7", "3", "9^9^9", "", gold="3", group_size=2)
    method = EMPO(Config(), Budgeted(views))
    assert method.components(batch)["oc"].tolist() == [0, 1, 0, 0]
    assert views == [[("7", "3")], [], [("3", "7"), ("3", "3")], [("3", "9^9^9")]]
    assert method.clustering(batch, 2).reasons == ("slow", "blank") and method.clustering(batch, 0).reasons == ("ok", "ok")
