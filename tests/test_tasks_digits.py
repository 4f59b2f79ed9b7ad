"""The world of the digits: its rules by hand, its promise that no story covers it, its demonstrations."""

import random
from collections import Counter

import numpy as np
import pytest

from explorl import encoders
from explorl.papers import sde2
from explorl.tasks import digits
from explorl.text.answers import same
from explorl.text.strategies import parse

EVEN = [1.0] * len(digits.RULES)


@pytest.mark.parametrize("name, written", [
    ("total", "7 + 4 = 11, 11 + 9 = 20"),
    ("area", "7 * 4 = 28, 28 + 9 = 37"),
    ("tickets", "7 + 4 = 11, 11 * 9 = 99"),
    ("discount", "7 * 4 = 28, 28 - 9 = 19"),
    ("travel", "4 * 9 = 36, 36 + 7 = 43"),
    ("orchard", "4 * 9 = 36, 36 - 7 = 29"),
])
def test_each_story_by_hand(name, written):
    rule = next(r for r in digits.RULES if r.name == name)
    assert rule.work((7, 4, 9)) == (written, int(written.split()[-1]))


def test_a_problem_hides_its_story_but_its_last_digit_gives_it_away():
    for problem in digits.problems():
        values = {rule.name: rule.work(problem.meta["numbers"])[1] for rule in digits.RULES}
        fitting = [name for name, value in values.items() if value % 10 == int(problem.gold) % 10]
        assert fitting == [problem.meta["story"]] and values[fitting[0]] == int(problem.gold)
        assert problem.prompt.endswith(f"ends in {int(problem.gold) % 10}.")
        assert problem.gold not in problem.prompt or int(problem.gold) < 10
        assert min(values.values()) >= 0


def test_no_single_story_covers_the_problems():
    parts = digits.load()
    for part in (parts.train, parts.select, parts.test):
        shares = sorted(n / len(part) for n in Counter(p.meta["story"] for p in part).values())
        assert len(shares) == 6 and shares[-1] < 0.3 and sum(shares[-4:]) < 0.8


def test_the_three_sides_share_no_triple_of_numbers():
    parts = digits.load()
    keys = [{p.meta["numbers"] for p in part} for part in (parts.train, parts.select, parts.test)]
    assert min(map(len, keys)) > 50
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]


def test_wordings_are_paraphrases_and_stories_are_apart_for_the_real_encoder():
    sentences = list(digits.STORY_OF)
    assert len(sentences) == 4 * 6 + len(digits.OFF_TOPIC)
    cosines = sde2.pairwise_cosine(encoders.load("minilm")(sentences))
    story = np.array(list(digits.STORY_OF.values()))
    on = story != "off_topic"
    alike = (story[:, None] == story[None]) & on[:, None] & ~np.eye(len(story), dtype=bool)
    apart = (story[:, None] != story[None]) & on[:, None] & on[None]
    assert cosines[alike].mean() > 0.85 and cosines[alike].min() > 0.75
    assert 0.4 < cosines[apart].mean() < 0.55 and cosines[apart].max() < 0.8
    assert abs(cosines[np.ix_(on, ~on)]).mean() < 0.1


def test_a_demonstration_is_well_formed_and_its_answer_is_checked():
    generator, problems = random.Random(0), digits.problems()
    for blocks in (1, 2, 5):
        for problem in generator.choices(problems, k=50):
            text = digits.demonstration(problem, generator, habit=EVEN, blocks=blocks, off_topic=0.2)
            parsed = parse(text, dup_key="none")
            assert len(parsed.strategies) == blocks and parsed.source == "FA"
            found = any(same(outcome, problem.gold) for _, outcome in parsed.strategies)
            last = parsed.strategies[-1][1]
            assert same(parsed.final, problem.gold if found else last)


def test_a_habit_that_stays_repeats_the_story_in_other_words():
    text = digits.demonstration(digits.problems()[0], random.Random(1), habit=EVEN, blocks=5, stay=1.0)
    told = [sentence for sentence, _ in parse(text, dup_key="none").strategies]
    assert len({digits.STORY_OF[s] for s in told}) == 1 and len(set(told)) > 1


def test_demonstrations_follow_the_generator():
    def five(seed):
        generator = random.Random(seed)
        return [digits.demonstration(digits.problems()[9], generator, habit=EVEN, blocks=3) for _ in range(5)]

    assert five(3) == five(3) != five(4)


def test_describe_counts_what_the_completions_do():
    problem = next(p for p in digits.problems() if p.meta["numbers"] == (7, 4, 9) and p.meta["story"] == "area")
    total, area = (digits.FRAME + digits.RULES[i].wordings[0] for i in (0, 1))
    text = (digits.block(1, total, "7 + 4 = 11, 11 + 9 = 20") + digits.block(2, area, "7 * 4 = 28, 28 + 9 = 38")
            + digits.block(3, digits.OFF_TOPIC[0], "1") + digits.block(4, "Something else.", "2"))
    found = digits.describe([text, "nonsense"], [problem, problem])
    assert found["stories"] == 1.0 and found["covered"] == 0.5
    assert found["off_topic"] == 0.25 and found["arithmetic"] == 0.5
    assert found["share_total"] == found["share_area"] == 0.25 and found["share_travel"] == 0.0


@pytest.mark.parametrize("text", ["", "\0", "<strategy" * 1000, digits.block(1, "a", "9**9**9")])
def test_describe_reads_hostile_text(text):
    assert digits.describe([text], [digits.problems()[0]])["stories"] == 0.0
