"""Every setting of SD-E², with its default, and every reading that the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, fields

from explorl.errors import ConfigError, is_between, require, require_amount

_CHOICES = {
    "re_mode": ("chi", "any_strategy"),
    "chi_mode": ("any", "with_final"),
    "uniq_against": ("kept", "all_previous"),
    "dup_key": ("block", "reasoning", "id", "none"),
    "canon": ("numeric", "choice"),
    "num_pick": ("last", "single"),
    "norm_scope": ("batch", "group"),
}
_SWITCHES = ("delta_inclusive", "final_requires_tag", "adv_std")
_OPEN_UNIT = ("delta", "delta_eval")


@dataclass(frozen=True)
class Config:
    """Settings of the reward R_oc + R_re + R_fa + R_sd and of what follows it; checked when made.

    Numbers:
        lambda_oc, lambda_re: λ ≥ 0 of eq 16 and 19. The z-score cancels them: use the weights instead.
        gamma_s, gamma_a, gamma_c: γ ≥ 0 of eq 22, for each block, for an answer, for both together.
        alpha: bonus once some strategy is right (eq 17), above beta_cap.
        beta_cap: cap ≥ 0 of the exploration reward (the paper's β).
        rho: pay ≥ 0 for each unit of g (eq 18).
        delta: a strategy whose cosine to a kept one exceeds δ ∈ (0, 1) is redundant (eq 15).
        delta_eval: the δ of the redundancy metrics, the same for all models.
        w_oc, w_re, w_fa, w_sd: weights ≥ 0 of eq 30.
        eps: ε > 0 of eq 29 and 32.
        single_div: Div of a lone strategy, in [0, 1]; the paper's 1 digs the valley at 2–3 strategies.
        tie_tol: slack ≥ 0 of the comparison with δ, for equality in floating point.

    Readings:
        delta_inclusive: cosine = δ is not yet redundant.
        uniq_against: compare with the ``kept`` strategies (eq 15) or with ``all_previous``.
        dup_key: what makes two blocks duplicates: ``block`` (both parts), ``reasoning``, ``id`` or ``none``.
        final_requires_tag: only a written <final_answer> earns γ_a and γ_c; in the paper any outcome does.
        re_mode: R_re for a right strategy (``chi``, eq 19) or for ``any_strategy`` (eq 39 as printed).
        canon, num_pick: how answers are compared: as numbers or as choices; the last number or the only one.
        norm_scope: z-scores over the ``batch`` (eq 28) or over each ``group``.
        adv_std: divide advantages by the group's standard deviation (eq 32).
        max_strategies: M of eq 5, ≥ 1; None keeps all.

    Hardening, off by default:
        chi_mode: ``with_final`` counts a right strategy only if the final answer is right too.
        min_reasoning_chars: shorter reasonings earn no diversity.
        relevance_floor: reasonings with a smaller cosine to the prompt earn none either; None is off.

    >>> Config(alpha=0.4)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: alpha = 0.4: must be above beta_cap (0.5), else failing pays like succeeding
    """

    lambda_oc: float = 1.0
    lambda_re: float = 1.0
    gamma_s: float = 0.2
    gamma_a: float = 0.3
    gamma_c: float = 0.1
    alpha: float = 1.0
    beta_cap: float = 0.5
    rho: float = 0.1
    delta: float = 0.8
    delta_eval: float = 0.8
    w_oc: float = 1.0
    w_re: float = 1.0
    w_fa: float = 1.0
    w_sd: float = 1.0
    eps: float = 1e-6
    single_div: float = 1.0
    tie_tol: float = 1e-6
    delta_inclusive: bool = True
    uniq_against: str = "kept"
    dup_key: str = "block"
    final_requires_tag: bool = False
    re_mode: str = "chi"
    canon: str = "numeric"
    num_pick: str = "last"
    norm_scope: str = "batch"
    adv_std: bool = True
    max_strategies: int | None = None
    chi_mode: str = "any"
    min_reasoning_chars: int = 0
    relevance_floor: float | None = None

    def __post_init__(self):
        for item in fields(self):
            self._check(item.name, getattr(self, item.name))
        if self.alpha <= self.beta_cap:
            raise ConfigError(
                "alpha", self.alpha, f"above beta_cap ({self.beta_cap}), else failing pays like succeeding"
            )

    @property
    def weights(self) -> dict[str, float]:
        """w_k by component."""
        return {"oc": self.w_oc, "re": self.w_re, "fa": self.w_fa, "sd": self.w_sd}

    def _check(self, name: str, value: object) -> None:
        if name in _CHOICES:
            require(value in _CHOICES[name], name, value, "one of " + ", ".join(_CHOICES[name]))
        elif name in _SWITCHES:
            require(isinstance(value, bool), name, value, "True or False")
        elif name == "min_reasoning_chars":
            require(_whole(value, 0), name, value, "a whole number from 0 up")
        elif name == "max_strategies":
            require(value is None or _whole(value, 1), name, value, "None or a whole number from 1 up")
        elif name == "relevance_floor":
            require(value is None or is_between(value, -1, 1), name, value, "None or a number from -1 to 1")
        elif name in _OPEN_UNIT:
            require(is_between(value, 0, 1) and 0 < value < 1, name, value, "a number above 0 and below 1")
        elif name == "single_div":
            require(is_between(value, 0, 1), name, value, "a number from 0 to 1")
        else:
            require_amount(name, value, above_zero=name == "eps")


def _whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low
