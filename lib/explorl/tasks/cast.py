"""The cast: eight completions to two prompts, the same ones in every chapter.

Each plays a part that some reward gets wrong. Group A has contrast under a plain outcome reward (three right,
one wrong); group B has none (all wrong), so that plain GRPO learns nothing from it. In B two completions
agree on the same wrong answer. The problems and texts are invented for this book.

==  ======================  ==============================================  =======
id  label                   what it writes                                  answer
==  ======================  ==============================================  =======
A1  right-boxed             free text with a LaTeX box, no tags             16
A2  right-unboxed           one strategy in the schema                      16
A3  right-other-path        two paths, a paraphrase, a verbatim repeat      16
A4  wrong-unique            a shotgun: one outcome is right, the final not  34
B1  wrong-same-as-another   two different wrong strategies                  17
B2  truncated               one wrong strategy, the next one cut off        17
B3  empty                   nothing                                         none
B4  prompt-echo             the question again                              none
==  ======================  ==============================================  =======
"""

from __future__ import annotations

from dataclasses import dataclass

PROMPT_A = (
    "Mara buys 4 notebooks at 7 dollars each and 3 pens at 2 dollars each. She pays with a 50 dollar bill. "
    "How many dollars of change does she get?"
)
PROMPT_B = (
    "A tram leaves the depot with 12 passengers. At each of the next 3 stops, 9 people get on and 4 people "
    "get off. How many passengers are on the tram after the last of these stops?"
)
GROUP_SIZE = 4


@dataclass(frozen=True)
class CastMember:
    """One completion of the cast.

    Attributes:
        id: "A1" … "B4"; the letter names the prompt.
        label: the part it plays.
        prompt: the question.
        gold: the right answer, an integer as text.
        completion: what the model is imagined to have written.
        note: what to look at.
    """

    id: str
    label: str
    prompt: str
    gold: str
    completion: str
    note: str


def strategy(number: int, reasoning: str, outcome: str) -> str:
    """One strategy block in the schema of SD-E² (App. E).

    >>> strategy(1, "Add.", "3")[:35]
    '<strategy id="1">\\n<reasoning>Add.</'
    """
    return (f'<strategy id="{number}">\n<reasoning>{reasoning}</reasoning>\n'
            f"<strategy_outcome>{outcome}</strategy_outcome>\n</strategy>\n")


def _final(answer: str) -> str:
    return f"<final_answer>{answer}</final_answer>"


_TOTAL_FIRST = ("Add up the bill and take it from the 50 dollars. The notebooks cost 4 * 7 = 28 and the pens "
                "cost 3 * 2 = 6, so the bill is 28 + 6 = 34. The change is 50 - 34 = 16.")
_TOTAL_AGAIN = ("Work out the total bill and subtract it from 50 dollars. 4 notebooks cost 4 * 7 = 28 and 3 "
                "pens cost 3 * 2 = 6, which is 34 in all. The change is 50 - 34 = 16.")
_HAND_OVER = ("Count up from what Mara owes to what she hands over, as a cashier does: from 34 dollars 6 "
              "more make 40, and another 10 make 50, so 6 + 10 = 16 come back.")
_PER_STOP = ("Look at what one stop does: 9 people get on and 4 people get off, so the tram gains 9 - 4 = 5. "
             "That makes 12 + 5 = 17.")
_BOARDING = ("Count the people who get on the tram over the whole ride: 3 * 9 = 27. With the 12 passengers "
             "from the depot there are 12 + 27 = 39.")

CAST: tuple[CastMember, ...] = (
    CastMember(
        "A1", "right-boxed", PROMPT_A, "16",
        "The notebooks cost 4 * 7 = 28 dollars and the pens cost 3 * 2 = 6 dollars, together 34 dollars. "
        "Her change is 50 - 34 = \\boxed{16}.",
        "Right, but outside the schema: a reward that reads only tags sees no answer."),
    CastMember(
        "A2", "right-unboxed", PROMPT_A, "16",
        strategy(1, _TOTAL_FIRST, "16") + _final("16"),
        "The plain good completion: one strategy, right, and the final answer repeats it."),
    CastMember(
        "A3", "right-other-path", PROMPT_A, "16",
        strategy(1, _TOTAL_FIRST, "16") + strategy(2, _TOTAL_AGAIN, "16") + strategy(3, _TOTAL_FIRST, "16")
        + strategy(4, _HAND_OVER, "16 dollars") + _final("$16"),
        "A second path, but also a paraphrase and a verbatim repeat; once one is right, padding is free."),
    CastMember(
        "A4", "wrong-unique", PROMPT_A, "16",
        strategy(1, "Take the price of the notebooks from the bill she pays with: 50 - 4 * 7 = 22.", "22")
        + strategy(2, "Take the price of the notebooks and the pens from the bill she pays with: "
                      "50 - 4 * 7 - 3 * 2 = 16.", "16")
        + strategy(3, "Take the price of the pens from the bill she pays with: 50 - 3 * 2 = 44.", "44")
        + strategy(4, "Add the price of the notebooks and the price of the pens: 4 * 7 + 3 * 2 = 34.", "34")
        + _final("34"),
        "A shotgun: four outcomes, one of them right, and the wrong one is handed in."),
    CastMember(
        "B1", "wrong-same-as-another", PROMPT_B, "27",
        strategy(1, _PER_STOP, "17") + strategy(2, _BOARDING, "39") + _final("17"),
        "Two different wrong ideas: the exploration term pays them less than one."),
    CastMember(
        "B2", "truncated", PROMPT_B, "27",
        strategy(1, _PER_STOP, "17")
        + '<strategy id="2">\n<reasoning>Go through the stops one by one. After the first stop there are '
          "12 + 9 - 4 = 17",
        "Cut at the token limit: the second block never closes; the answer comes from the first outcome."),
    CastMember("B3", "empty", PROMPT_B, "27", "", "Nothing at all."),
    CastMember("B4", "prompt-echo", PROMPT_B, "27", PROMPT_B, "The question again: numbers, but no answer."),
)


def member(name: str) -> CastMember:
    """The cast member with this id or label.

    Raises:
        KeyError: no such member.

    >>> member("A4").label
    'wrong-unique'
    """
    for one in CAST:
        if name in (one.id, one.label):
            return one
    raise KeyError(f"no cast member {name!r}; there are {', '.join(m.id for m in CAST)}")
