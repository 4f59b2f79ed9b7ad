"""Baselines: the counted and the length-penalised reward, outcome only, the shuffled control, majority voting,
and the two extensions: stopping at redundancy and voting over distinct strategies."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from explorl import encoders
from explorl.errors import ConfigError
from explorl.papers import baselines, sde2
from explorl.papers.baselines import CFEE, CFL, LengthPenalty, Outcome, Shuffled
from explorl.papers.method import Batch, group_normalise
from explorl.papers.sde2 import SDE2, Config, zscore
from explorl.papers.sde2_stop import RedundancyStop, vote

CASES = json.loads((Path(__file__).parent / "vectors" / "sde2.json").read_text(encoding="utf-8"))["cases"]
RANDOM = encoders.load("random")


def block(reasoning: str, outcome: str) -> str:
    return (f"<strategy><reasoning>{reasoning}</reasoning>"
            f"<strategy_outcome>{outcome}</strategy_outcome></strategy>")


def batch_of(*completions: str, gold: str = "18", group_size: int = 2, step: int = 0, lengths=()) -> Batch:
    n = len(completions)
    return Batch(prompts=["p"] * n, completions=completions, gold=[gold] * n, group_size=group_size, step=step,
                 completion_ids=[[0] * length for length in lengths])


FOUR = (block("a", "18") + "<final_answer>18</final_answer>", block("a", "20") + block("b", "21"),
        "<final_answer>18</final_answer>", "no tags at all")


@pytest.mark.parametrize("case", [c for c in CASES if "R_cnt" in c["expect"]], ids=lambda c: c["name"])
def test_counted_exploration_of_the_cases(case):
    settings = {k: v for k, v in case["cfg"].items()}
    found = baselines.cfee([case["text"]], case["y"], config=Config(**settings))
    assert found["rd"] == pytest.approx([case["expect"]["R_cnt"]], abs=1e-12)
    assert "sd" not in found, "no encoder, no semantic exploration"


def test_cfee_sums_its_four_components():
    batch = batch_of(*FOUR)
    method = CFEE(Config(w_fa=0.5), w_rd=2.0)
    found = method.components(batch)
    assert found["rd"].tolist() == [1.0, 0.2, 0.0, 0.0]
    expected = zscore(found["oc"]) + zscore(found["re"]) + 0.5 * zscore(found["fa"]) + 2 * zscore(found["rd"])
    assert method.aggregate(found, batch) == pytest.approx(expected)


def test_length_penalty_is_a_hinge():
    assert LengthPenalty(10, 30)([0, 10, 20, 30, 50]).tolist() == [0, 0, -0.5, -1, -2]


def test_the_slope_of_the_length_penalty_cancels_and_its_shape_does_not():
    lengths = [5, 12, 25, 30]
    batch = batch_of(*FOUR, lengths=lengths)
    steep, flat, hinged = (CFL(Config(), LengthPenalty(free, top)) for free, top in ((0, 30), (0, 300), (10, 30)))
    totals = [m.aggregate(m.components(batch), batch) for m in (steep, flat, hinged)]
    assert totals[0] == pytest.approx(totals[1], abs=1e-4) and totals[0] != pytest.approx(totals[2], abs=1e-2)


def test_cfl_sums_its_three_components_and_needs_lengths():
    batch = batch_of(*FOUR, lengths=[5, 12, 25, 30])
    method = CFL(Config(), LengthPenalty(10, 30), w_l=3.0)
    found = method.components(batch)
    assert found["l"].tolist() == [0, -0.1, -0.75, -1] and found["length_tokens"].tolist() == [5, 12, 25, 30]
    expected = zscore(found["oc"]) + zscore(found["fa"]) + 3 * zscore(found["l"])
    assert method.aggregate(found, batch) == pytest.approx(expected)
    same = baselines.cfl(FOUR, "18", lengths=[5, 12, 25, 30], penalty=LengthPenalty(10, 30))
    assert same["l"].tolist() == found["l"].tolist()
    with pytest.raises(ConfigError, match="completion_ids"):
        method.components(batch_of(*FOUR))


@pytest.mark.parametrize("make", [
    lambda: LengthPenalty(-1, 10), lambda: LengthPenalty(10, 10), lambda: CFEE(w_rd=float("nan")),
    lambda: CFL(w_l=-1), lambda: Shuffled(Outcome(), seed=-1),
])
def test_wrong_settings(make):
    with pytest.raises(ConfigError):
        make()


def test_outcome_is_plain_grpo():
    batch = batch_of(*FOUR)
    method = Outcome()
    found = method.components(batch)
    total = method.aggregate(found, batch)
    assert found["oc"].tolist() == [1, 0, 1, 0]
    assert method.advantages(total, found, batch).values == pytest.approx(group_normalise(found["oc"], 2), abs=1e-4)


def test_baselines_refuse_a_group_of_one():
    batch = batch_of("x", group_size=1)
    with pytest.raises(ConfigError, match="group_size"):
        CFEE().advantages(np.zeros(1), {}, batch)


# ── The shuffled control ──

EIGHT = FOUR + tuple(block(f"way {i}", "20") * (i + 1) + block(f"other {i}", str(i)) for i in range(4))


def test_shuffling_deals_one_component_out_anew_each_step():
    method = Shuffled(SDE2(Config(), RANDOM), "sd", seed=3)
    plain = SDE2(Config(), RANDOM)
    totals = []
    for step in range(3):
        batch = batch_of(*EIGHT, step=step)
        found = method.components(batch)
        assert found["sd"].tolist() == plain.components(batch)["sd"].tolist(), "logs stay true"
        total = method.aggregate(found, batch)
        assert total.tolist() == method.aggregate(found, batch).tolist(), "the step fixes the permutation"
        difference = total - plain.aggregate(found, batch) + zscore(found["sd"])
        assert np.sort(difference) == pytest.approx(np.sort(zscore(found["sd"]))), "same values, other owners"
        totals.append(total.tolist())
    assert totals[0] != totals[1] != totals[2] and method.name == "sde2_shuffled"
    assert Shuffled(plain, "sd", seed=4).aggregate(found, batch).tolist() != totals[2]


def test_shuffling_a_component_that_is_not_there():
    batch = batch_of(*FOUR)
    method = Shuffled(CFEE(), "sd")
    with pytest.raises(ConfigError, match="component"):
        method.aggregate(method.components(batch), batch)


# ── Votes ──

def answer(x: str) -> str:
    return f"<final_answer>{x}</final_answer>"


def test_majority_vote_counts_equal_answers_together():
    assert baselines.majority_vote([answer("20"), answer("18.0"), "nothing", answer("$18")]) == "18.0"
    assert baselines.majority_vote([answer("20"), answer("18")]) == "20", "the first of equals"
    assert baselines.majority_vote(["nothing", ""]) == "" == baselines.majority_vote([])


def test_repeating_a_strategy_wins_no_vote():
    shouted = block("a", "20") + block("A", "20.0") + block("b", "18") + block("c", "18") + block("a ", "$20")
    encode = lambda texts: np.array([{"a": [1, 0, 0], "A": [1, 0, 0], "b": [0, 1, 0], "c": [0, 0, 1]}[t]
                                     for t in texts])
    distinct, all_of_them = vote(shouted, encode), vote(shouted, encode, distinct=False)
    assert (distinct.answer, distinct.votes) == ("18", {"20": 1, "18": 2})
    assert (all_of_them.answer, all_of_them.votes) == ("20", {"20": 3, "18": 2})


def test_ties_and_silence():
    two = block("a", "20") + block("b", "18")
    assert vote(two + answer("18.0"), RANDOM).answer == "18"
    assert vote(two + answer("7"), RANDOM).answer == "20"
    assert vote(answer("7"), RANDOM) == vote(answer("7"), RANDOM, distinct=False)
    assert (vote(answer("7"), RANDOM).answer, vote(answer("7"), RANDOM).source) == ("7", "FA")
    assert vote("", RANDOM).answer == ""


# ── Stopping ──

class Characters:
    """A tokenizer with one token per character; 0 is padding."""

    def encode(self, text):
        return [ord(c) for c in text]

    def batch_decode(self, rows, skip_special_tokens):
        return ["".join(chr(i) for i in row if i) for row in rows]


def write(stop: RedundancyStop, texts: list[str], prompt: str = "question ") -> list[int | None]:
    """Feed the texts one character at a time; where does each row first stop?"""
    tokenizer, first = Characters(), [None] * len(texts)
    longest = max(map(len, texts))
    rows = [tokenizer.encode(prompt + text.ljust(longest, "\0")) for text in texts]
    for now in range(len(prompt) + 1, len(rows[0]) + 1):
        flags = stop(torch.tensor([row[:now] for row in rows]), None)
        assert flags.dtype == torch.bool and flags.shape == (len(texts),)
        for i, flag in enumerate(flags.tolist()):
            if flag and first[i] is None:
                first[i] = now - len(prompt)
            assert flag == (first[i] is not None), "once stopped, stopped"
    return first


def test_a_row_stops_after_k_redundant_strategies_in_a_row():
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return RANDOM(texts)

    a, b = block("a", "1"), block("b", "2")
    repeated = [a, b, a, b, a]
    texts = ["".join(repeated), "".join([a, b, a, block("c", "3"), b]), "no strategy here", a + a]
    prompt = "<strategy><reasoning>a</reasoning><strategy_outcome>1</strategy_outcome></strategy> "
    stopped = write(RedundancyStop(Characters(), encode, len(prompt), patience=2), texts, prompt)
    assert stopped == [len(a + b + a + b), None, None, None]
    assert calls[0] == ["a", "a", "a"], "blocks that close together are encoded together"
    assert sum(map(len, calls)) == 4 + 5 + 2, "and each block once"


def test_patience_one_stops_at_the_first_repetition():
    a = block("a", "1")
    stop = RedundancyStop(Characters(), RANDOM, len("question "), patience=1)
    assert write(stop, [a + a.replace("1", "2") + a]) == [2 * len(a)]


def test_malformed_blocks_are_no_strategies():
    broken = "<strategy><reasoning>a</reasoning></strategy>"
    stop = RedundancyStop(Characters(), RANDOM, len("question "), patience=1)
    assert write(stop, [broken * 3 + block("a", "1")]) == [None]


def test_stop_agrees_with_the_reward_on_what_is_redundant():
    texts = [block(r, str(i)) for i, r in enumerate("abacad")]
    found = sde2.stages("".join(texts), "99", RANDOM)
    first = next(i for i in range(6) if i not in found.kept)
    stop = RedundancyStop(Characters(), RANDOM, len("question "), patience=1)
    assert write(stop, ["".join(texts)]) == [len("".join(texts[: first + 1]))]


def test_stop_follows_one_batch_and_checks_patience():
    stop = RedundancyStop(Characters(), RANDOM, 0)
    stop(torch.zeros((2, 1), dtype=torch.long), None)
    with pytest.raises(ValueError, match="one batch"):
        stop(torch.zeros((3, 1), dtype=torch.long), None)
    with pytest.raises(ConfigError, match="patience"):
        RedundancyStop(Characters(), RANDOM, 0, patience=0)


def test_stop_in_generate():
    from transformers import Qwen2Config, Qwen2ForCausalLM, StoppingCriteriaList

    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=300, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                                         num_attention_heads=1, num_key_value_heads=1, eos_token_id=None,
                                         bos_token_id=None, pad_token_id=0))

    class Sentences:
        """Every token is a whole strategy block, the same for all."""

        def batch_decode(self, rows, skip_special_tokens):
            return [block("same", "1") * len(row) for row in rows]

    stop = RedundancyStop(Sentences(), RANDOM, prompt_length=3, patience=2)
    out = model.generate(torch.ones((2, 3), dtype=torch.long), attention_mask=torch.ones((2, 3)), max_new_tokens=9,
                         do_sample=False, stopping_criteria=StoppingCriteriaList([stop]))
    assert out.shape == (2, 3 + 3), "one strategy and two repetitions"
