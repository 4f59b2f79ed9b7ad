"""How tables head the metrics that a record holds."""

from __future__ import annotations

from collections.abc import Mapping

METRICS: Mapping[str, tuple[str, str]] = {
    "acc_strict": ("ACC", "%"), "acc_fallback": ("ACC, with fallback", "%"), "s_acc": ("S-ACC", "%"),
    "s_acc_by_chance": ("S-ACC by chance", "%"), "n_strategies": ("#STR", ""), "uniq": ("Uniq", ""),
    "tokens": ("tokens", ""), "truncated": ("cut off", "%"), "off_topic": ("off topic", "%"),
    "covered": ("rule told", "%"), "acc": ("ACC", "%"), "acc_avg": ("ACC, average", "%"),
    "majority_right": ("majority right", "%"),
    "pass_at_4": ("pass@4", "%"), "pass_at_64": ("pass@64", "%"), "blank": ("blank", "%"), "kept": ("groups kept", "%"),
    "entropy_nats": ("H, nats", ""), "n_clusters": ("clusters", ""), "p_majority": ("majority's share", "%"),
    "pass_at_2": ("pass@2", "%"), "pass_at_8": ("pass@8", "%"), "pass_at_16": ("pass@16", "%"),
    "pass_at_32": ("pass@32", "%"), "format": ("well formed", "%"), "answers": ("different answers", ""),
    "stories": ("stories", ""), "arithmetic": ("arithmetic right", "%"), "acc_needs": ("ACC, needs × or ÷", "%"),
    "strict_not_tinyzero": ("right here, not for TinyZero", "%"), "acc_countdown_34": ("Countdown-34", "%"),
    "acc_countdown_4": ("Countdown-4", "%"), "acc_aime24": ("AIME 2024", "%"),
    "acc_where_right": ("ACC, majority right", "%"), "acc_where_wrong": ("ACC, majority wrong", "%"),
}
"""Metric → (column heading, "%" where a proportion is shown as percent)."""
