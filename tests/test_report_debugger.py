import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorl.errors import ConfigError
from explorl.papers import baselines, sde2
from explorl.papers.method import Batch, Method
from explorl.report import debugger
from explorl.report.debugger import Stage, stages, to_html, to_text
from explorl.report.highlight import spans
from explorl.tasks.cast import CAST, GROUP_SIZE, strategy

WORDS = {"so": 1, "the": 2, "cost": 3, "stop": 4, "change": 5}


def encode(texts):
    """Bags of a few words: distinct enough, and no model to load."""
    counts = [[text.lower().count(word) + 1.0 for word in WORDS] for text in texts]
    return np.array(counts, dtype=np.float32).reshape(len(texts), -1)


def cast_batch():
    return Batch([m.prompt for m in CAST], [m.completion for m in CAST], [m.gold for m in CAST], GROUP_SIZE)


def method(**changes):
    return sde2.SDE2(sde2.Config(**changes), encode)


def by_name(shown):
    return {stage.name: stage for stage in shown}


def test_stages_run_from_text_to_advantage_in_order():
    names = [stage.name for stage in stages(cast_batch(), 3, method())]
    assert names[:5] == ["text", "strategies", "extracted answer", "final right?", "some strategy right? χ"]
    assert names[5:9] == ["cosines", "Uniq", "Div", "g"]
    assert names[-2:] == ["total", "advantage"]
    assert len(names) == 9 + 4 * 3 + 2


@pytest.mark.parametrize("scope", ["batch", "group"])
@pytest.mark.parametrize("index", range(8))
def test_shown_terms_add_up_to_the_methods_own_total_and_advantage(index, scope):
    batch, own = cast_batch(), method(norm_scope=scope, w_oc=2.0)
    shown = by_name(stages(batch, index, own))
    components = own.components(batch)
    total = own.aggregate(components, batch)
    terms = [s.value for name, s in shown.items() if name.endswith(", weighted")]
    assert len(terms) == 4 and sum(terms) == pytest.approx(total[index], abs=1e-9)
    assert shown["total"].value == pytest.approx(total[index])
    assert shown["advantage"].value == pytest.approx(own.advantages(total, components, batch).values[index])
    assert shown["final answer right, raw"].value == components["oc"][index]


@pytest.mark.parametrize("own, names", [
    (baselines.CFEE(w_rd=0.5), ["final answer right", "format", "a strategy right", "exploration, counted"]),
    (baselines.CFL(), ["final answer right", "format", "length"]),
    (baselines.Outcome(), ["final answer right"])])
def test_baselines_show_their_own_terms(own, names):
    plain = cast_batch()
    batch = Batch(plain.prompts, plain.completions, plain.gold, GROUP_SIZE,
                  completion_ids=[range(len(text)) for text in plain.completions])
    shown = stages(batch, 3, own)
    terms = {s.name: s.value for s in shown if s.name.endswith(", weighted")}
    assert list(terms) == [f"{name}, weighted" for name in names]
    assert sum(terms.values()) == pytest.approx(by_name(shown)["total"].value, abs=1e-9)
    assert "cosines" not in by_name(shown)


def test_shotgun_is_explained():
    shown = by_name(stages(cast_batch(), 3, method()))
    assert shown["extracted answer"].value == "34" and "final_answer" in shown["extracted answer"].reason
    assert shown["final right?"].value is False and shown["some strategy right? χ"].value is True
    assert "flat bonus" in shown["some strategy right? χ"].reason and shown["exploration, raw"].value == 1
    assert shown["cosines"].value.shape == (4, 4)
    assert shown["g"].reason == "not used: χ = 1 pays the flat bonus"


def test_truncated_and_empty_are_explained():
    cut = by_name(stages(cast_batch(), 5, method()))
    assert "1 unclosed" in cut["strategies"].reason and cut["strategies"].value == 1
    assert "last strategy" in cut["extracted answer"].reason and "single_div" in cut["Div"].reason
    empty = by_name(stages(cast_batch(), 6, method()))
    assert empty["text"].reason == "empty" and "cosines" not in empty
    assert empty["strategies"].reason == "empty" and empty["extracted answer"].value == ""


def test_a_component_that_never_varies_is_said_to():
    batch = Batch(["q"] * 2, ["", ""], ["1", "1"], 2)
    shown = by_name(stages(batch, 0, method()))
    assert shown["format, z"].value == 0 and "never varies" in shown["format, z"].reason
    assert shown["advantage"].value == 0 and "no contrast" in shown["advantage"].reason


class Coin(Method):
    name = "coin"

    def components(self, batch):
        return {"heads": np.array([1.0, 0.0])}

    def aggregate(self, components, batch):
        return components["heads"]


def test_a_stranger_is_shown_by_its_components_and_a_provider_can_say_more():
    batch = Batch(["q"] * 2, ["it is \\boxed{3}", "no"], ["3", "3"], 2)
    assert [s.name for s in stages(batch, 0, Coin())] == ["text", "answer", "heads", "total", "advantage"]
    assert by_name(stages(batch, 0, Coin()))["answer"].value == "3"
    told = stages(batch, 1, Coin(), provider=lambda *given: [Stage("why", "a coin", "tails", "chance")])
    assert [s.name for s in told] == ["text", "why", "total", "advantage"]
    assert told[-1].value == pytest.approx(-1, abs=1e-5) and told[-1].reason == "made less likely"


def test_index_must_name_a_completion():
    with pytest.raises(ConfigError, match="index = 8"):
        stages(cast_batch(), 8, method())


def test_spans_mark_what_counted_and_what_was_dropped():
    text = (strategy(1, "add", "3") + strategy(2, "add", "3") + "so <final_answer>3</final_answer>"
            + "<strategy><reasoning>cut")
    marked = spans(text)
    assert [s.text for s in marked if s.kind == "reasoning"] == ["add"]
    assert [s.text for s in marked if s.kind == "outcome"] == ["3"]
    assert [s.text for s in marked if s.kind == "final"] == ["3"]
    dropped = "".join(s.text for s in marked if s.kind == "dropped")
    assert dropped.count("<reasoning>add</reasoning>") == 1 and dropped.endswith("<strategy><reasoning>cut")


TAGS = ["<strategy>", "</strategy>", "<reasoning>", "</reasoning>", "<strategy_outcome>", "</strategy_outcome>",
        "<final_answer>", "</final_answer>", "<reasoning>r</reasoning>", "<strategy_outcome>1</strategy_outcome>"]


@given(st.lists(st.sampled_from([*TAGS, *"<>/x \n"])).map("".join))
def test_spans_give_the_text_back(text):
    assert "".join(s.text for s in spans(text)) == text


def test_spans_look_at_a_bounded_stretch():
    text = "x <answer>3</answer> " * 50_000
    marked = spans(text)
    assert "".join(s.text for s in marked) == text and len(marked) < 5_000


class Reader(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


HOSTILE = ("</pre><script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover=\"x $\\alpha$ \x00 \u202e abc"
           "<final_answer><b onclick='x'>3</b></final_answer><strategy id=\"</style>\">")


def test_html_lets_no_model_text_become_markup():
    batch = Batch([HOSTILE] * 2, [HOSTILE, HOSTILE * 500], [HOSTILE] * 2, 2)
    for index in range(2):
        html = to_html(stages(batch, index, method()), title=HOSTILE)
        read = Reader(html)
        assert set(read.tags) == {"div", "style", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "pre"}
        assert set(read.attributes) <= {"class", "colspan"}
        assert read.tags.count("style") == 1 and html.count("</style>") == 1
        assert "\x00" not in html and "\u202e" not in html and "␀" in html and "⟨U+202E⟩" in html
        assert "mathjax_ignore" in html and len(html) < 60_000


def test_html_suits_light_and_dark_pages_and_loads_nothing():
    html = to_html(stages(cast_batch(), 3, method()), title="A4")
    css = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    assert not re.search(r"(?<![-\w])color:(?!inherit)", css) and "#fff" not in css and "url(" not in css
    assert all(f"rgba({c}" in css for c in ("43,131,186", "224,138,0", "0,158,115"))
    assert "<caption>A4</caption>" in html and html.count('<span class="outcome">') == 4 + 1
    assert re.search(r'<th>total</th>.*?<td class="v">-?\d\.\d{3}</td>', html)


def test_plain_text_has_every_stage_and_marks_dropped_text():
    shown = stages(cast_batch(), 2, method())
    text = to_text(shown)
    assert all(stage.name in text for stage in shown) and "⟦<strategy id=\"3\">⟧" in text
    assert re.search(r"^extracted answer +\$16$", text, re.M) and "eq 27–29" in text
    assert "\x00" not in to_text(stages(Batch(["q"] * 2, ["\x00\x1b[31m"] * 2, ["1"] * 2, 2), 0, method()))
    assert "\x1b" not in to_text(stages(Batch(["q"] * 2, ["\x00\x1b[31m"] * 2, ["1"] * 2, 2), 0, method()))


def test_long_texts_are_cut_in_both_renderers():
    shown = stages(Batch(["q"] * 2, ["word " * 100_000] * 2, ["1"] * 2, 2), 0, method())
    assert len(to_html(shown)) < 40_000 and "496,000 more characters" in to_html(shown)
    assert len(to_text(shown)) < 20_000 and "496,000 more characters" in to_text(shown)


def test_value_text_of_every_kind():
    assert debugger.value_text(np.array([[1.0, 0.5], [0.5, 1.0]])) == "1.00  0.50\n0.50  1.00"
    assert debugger.value_text(np.bool_(False)) == "no" and debugger.value_text(3) == "3"
    big = debugger.value_text(np.eye(200))
    assert big.endswith("… (200 × 200)") and len(big.splitlines()) == 11
    assert debugger.value_text([]) == "(empty)" and debugger.value_text("") == "(none)"
