"""What passes through the trainer's seams: rewards, checked and measured, and advantages, put in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorl.errors import ConfigError
from explorl.papers.method import Advantages

if TYPE_CHECKING:
    import torch


def text_of(value: str | list[dict[str, str]]) -> str:
    """The text of a prompt or completion, also of chat messages (joined by newlines).

    >>> text_of([{"role": "assistant", "content": "42"}])
    '42'
    """
    return value if isinstance(value, str) else "\n".join(message["content"] or "" for message in value)


def check_rewards(total: np.ndarray, components: Mapping[str, np.ndarray], rows: int) -> None:
    """Raise ConfigError, naming the components at fault, unless there are ``rows`` finite rewards.

    >>> check_rewards(np.array([1.0, np.nan]), {"oc": np.array([1.0, np.nan])}, 2)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: reward from component oc = nan: must be finite in all 2 completions; 1 are not
    """
    if total.shape != (rows,):
        raise ConfigError("total reward", f"shape {total.shape}", f"of shape ({rows},), one per completion")
    bad = ~np.isfinite(total)
    if bad.any():
        at_fault = [name for name, values in components.items() if not _finite(values, bad)]
        source = f"component {', '.join(at_fault)}" if at_fault else "the aggregation"
        raise ConfigError(f"reward from {source}", total[bad][0].item(),
                          f"finite in all {rows} completions; {bad.sum()} are not")


def _finite(values: np.ndarray, rows: np.ndarray) -> bool:
    values = np.asarray(values)
    return values.dtype.kind != "f" or bool(np.isfinite(values[rows]).all())


def component_metrics(components: Mapping[str, np.ndarray]) -> dict[str, float]:
    """``components/<name>/mean`` and ``…/std`` of every numeric component, over its finite entries.

    >>> component_metrics({"oc": np.array([1.0, 0.0, np.nan])})
    {'components/oc/mean': 0.5, 'components/oc/std': 0.5}
    """
    metrics = {}
    for name, values in components.items():
        values = np.asarray(values)
        if values.dtype.kind not in "fiub":
            continue
        values = values.astype(np.float64)
        values = values[np.isfinite(values)]
        if values.size:
            metrics[f"components/{name}/mean"] = float(values.mean())
            metrics[f"components/{name}/std"] = float(values.std())
    return metrics


def signal_metrics(
    total: np.ndarray, components: Mapping[str, np.ndarray], advantages: Advantages, group_size: int
) -> dict[str, float]:
    """How much of the batch teaches, and how much of it teaches against the answer key.

    Args:
        total: (N,) rewards, group-major.
        components: (N,) each; only ``oc`` is read.
        advantages: of the same N rows.
        group_size: G, a divisor of N.

    Returns:
        ``signal/flat_groups``: share of groups whose rewards are all equal. ``signal/kept_rows``: share of
        rows not dropped. With a component ``oc`` (> 0 where the answer is right) also
        ``signal/against_answer``: share of rows that are right and pushed down, or wrong and pushed up.

    >>> wrong_is_better = Advantages(np.array([-1.0, 1.0]))
    >>> m = signal_metrics(np.array([1.0, 2.0]), {"oc": np.array([1.0, 0.0])}, wrong_is_better, 2)
    >>> m["signal/flat_groups"], m["signal/against_answer"]
    (0.0, 1.0)
    """
    keep = _kept(advantages, len(total))
    flat = np.ptp(total.reshape(-1, group_size), axis=1) == 0
    metrics = {"signal/flat_groups": float(flat.mean()), "signal/kept_rows": float(keep.mean())}
    if "oc" in components:
        push = np.array([np.sign(np.sum(row)) for row in advantages.values]) * keep
        right = np.asarray(components["oc"]) > 0
        metrics["signal/against_answer"] = float(np.where(right, push < 0, push > 0).mean())
    return metrics


def kept_weight(advantages: Advantages, lengths: Sequence[int], loss_type: str) -> float:
    """By what the kept rows' advantages grow, so that the loss is a mean over them alone.

    TRL divides by what is in the batch, dropped rows included: by tokens for ``dapo`` and ``bnpo``, by rows for
    ``grpo`` and ``dr_grpo``. Exact, but for ``bnpo`` in several passes, which divides by each pass's own tokens.

    >>> half = Advantages(np.ones(4), keep=np.array([True, True, False, False]))
    >>> kept_weight(half, [3, 3, 1, 1], "grpo"), round(kept_weight(half, [3, 3, 1, 1], "dapo"), 3)
    (2.0, 1.333)
    """
    keep = _kept(advantages, len(lengths))
    size = np.asarray(lengths, dtype=np.float64) if loss_type in ("dapo", "bnpo") else np.ones(len(keep))
    kept = size[keep].sum()
    return float(size.sum() / kept) if kept else 1.0


def inject(out: dict[str, Any], advantages: Advantages, lengths: Sequence[int], weight: float = 1.0) -> None:
    """Put advantages into TRL's scored batch, in place; dropped rows become 0.

    A number per completion goes to ``advantages`` (N,). Numbers per token go to ``token_advantages`` (N, T),
    0 beyond a completion's end: a key of its own, so that TRL's shuffling and splitting stay as they are.

    Args:
        out: has ``advantages`` (N,) and ``completion_ids`` (N, T).
        advantages: N numbers, or a list of N arrays with a number per token.
        lengths: N completion lengths in tokens, T_i ≤ T.
        weight: every advantage is multiplied by it; see :func:`kept_weight`.

    Raises:
        ConfigError: a wrong number of rows or tokens, or a value that is not finite.
    """
    rows, width = out["completion_ids"].shape
    keep = _kept(advantages, rows)
    if len(advantages.values) != rows:
        raise ConfigError("advantages", f"{len(advantages.values)} rows", f"{rows} rows, one per completion")
    if any(np.ndim(row) for row in advantages.values):
        table = np.zeros((rows, width))
        for i, row in enumerate(advantages.values):
            if np.shape(row) != (lengths[i],):
                raise ConfigError(f"advantages[{i}]", f"shape {np.shape(row)}", f"of {lengths[i]} tokens")
            table[i, : lengths[i]] = row
        name, values = "token_advantages", table * keep[:, None]
    else:
        name, values = "advantages", np.asarray(advantages.values, dtype=np.float64) * keep
    if not np.isfinite(values).all():
        raise ConfigError("advantages", values[~np.isfinite(values)][0].item(), "finite")
    out[name] = out["advantages"].new_tensor(weight * values)


def _kept(advantages: Advantages, rows: int) -> np.ndarray:
    if advantages.keep is None:
        return np.ones(rows, dtype=bool)
    keep = np.asarray(advantages.keep, dtype=bool)
    if keep.shape != (rows,):
        raise ConfigError("keep", f"shape {keep.shape}", f"of shape ({rows},), one flag per completion")
    return keep


def left_packed(weights: torch.Tensor, inputs: Mapping[str, Any], pad_id: int) -> torch.Tensor:
    """Move per-token weights to where Unsloth's loss looks for them.

    TRL's loss sees the T completion columns. Unsloth shifts each row left by its own prompt padding and looks
    at the last T + m columns, m being the largest padding: row i's completion begins in column m − padding_i.

    Args:
        weights: (B, T), one per completion token.
        inputs: the loss's inputs: ``prompt_ids`` (B, P), left-padded, ``completion_ids`` (B, T), and the
            log-probabilities that Unsloth computed before, if any, whose width tells m.
        pad_id: the padding token.

    Returns:
        (B, T + m), 0 outside the completion.
    """
    padding = (inputs["prompt_ids"] == pad_id).sum(dim=1)
    length = weights.shape[1]
    known = [inputs[k] for k in ("old_per_token_logps", "ref_per_token_logps") if inputs.get(k) is not None]
    most = known[0].shape[1] - length if known else int(padding.max())
    packed = weights.new_zeros(len(weights), length + most)
    for row, start in enumerate((most - padding).tolist()):
        packed[row, start : start + length] = weights[row]
    return packed
