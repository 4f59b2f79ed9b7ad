"""The two networks of random network distillation: a fixed random target, and a predictor that learns it (eq 5).

Needs torch. Nobody but :class:`explorl.papers.imagine_novelty.Novelty` has to know this module.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from explorl.papers.imagine_config import Config


class Twins(nn.Module):
    """Token ids → the squared gap between predictor and target.

    Layers as published (``main_iMENTOR.py:18-57`` of Gaojingtong/IMAGINE at 44d1632): embedding, all positions in a
    row, batch normalisation with the batch's own statistics, then for either network linear layers with leaky ReLU
    between them and a sigmoid at the end. Weights are PyTorch's default ones, drawn from a seed of their own, so
    that nobody else's random numbers change.

    Args:
        vocab_size: token ids are below it; index ``vocab_size`` stands for an empty position where
            ``config.pad`` is ``own``, and is a vector of zeros that is not trained.
        config: sizes, ``novelty_input``, ``embedding``, ``pad``, ``seed``.
    """

    def __init__(self, vocab_size: int, config: Config):
        super().__init__()
        self.config = config
        self.pad = vocab_size if config.pad == "own" else 0
        flat = config.novelty_input == "flat_bn"
        features = config.emb_dim * (config.max_positions if flat else 1)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(config.seed)
            self.embedding = self._embedding(vocab_size)
            self.target = _layers(features, config)
            self.predictor = _layers(features, config)
        if flat:
            self.scale = nn.Parameter(torch.ones(features))
            self.shift = nn.Parameter(torch.zeros(features))
        self.target.requires_grad_(False)
        if flat and config.embedding == "own":
            self.target_embedding = self._embedding(vocab_size).requires_grad_(False)
            self.target_embedding.load_state_dict(self.embedding.state_dict())
        if not flat or config.embedding == "frozen":
            for name, weight in self.named_parameters():
                weight.requires_grad_(name.startswith("predictor"))

    def _embedding(self, vocab_size: int) -> nn.Embedding:
        own = self.config.pad == "own"
        return nn.Embedding(vocab_size + own, self.config.emb_dim, padding_idx=self.pad if own else None)

    def trained(self) -> list[nn.Parameter]:
        """The weights that an optimiser may change."""
        return [weight for weight in self.parameters() if weight.requires_grad]

    def outputs(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(N, out_dim) of the predictor, with gradient, and of the target, without."""
        ids = torch.where(mask, ids, self.pad)
        if self.config.novelty_input == "pooled":
            x = self._pooled(ids, mask)
            return self.predictor(x), self.target(x)
        x = self._normalised(self.embedding(ids), self.scale, self.shift)
        with torch.no_grad():
            own = self.config.embedding == "own"
            seen = self._normalised(self.target_embedding(ids), None, None) if own else x
            known = self.target(seen)
        return self.predictor(x), known

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(N, P) ids and mask → (N,) squared gaps."""
        guess, known = self.outputs(ids, mask)
        return (guess - known).square().sum(dim=1)

    @staticmethod
    def _normalised(vectors: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
        return F.batch_norm(vectors.flatten(1), None, None, scale, shift, training=True)

    def _pooled(self, ids: Tensor, mask: Tensor) -> Tensor:
        weight = mask.unsqueeze(2).to(self.embedding.weight.dtype)
        mean = (self.embedding(ids) * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
        return F.layer_norm(mean, mean.shape[1:])


def _layers(features: int, config: Config) -> nn.Sequential:
    sizes = [features, *config.hidden, config.out_dim]
    parts: list[nn.Module] = []
    for width, following in zip(sizes, sizes[1:], strict=False):
        parts += [nn.Linear(width, following), nn.LeakyReLU()]
    return nn.Sequential(*parts[:-1], nn.Sigmoid())
