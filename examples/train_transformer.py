"""A small transformer, trained for two steps with AdamW, profiled line by line.

Usage: python examples/train_transformer.py [cpu | cuda | simulated]
`simulated` runs PyTorch's real CUDA allocator over a simulated GPU; it needs the CUDA build of PyTorch, but no GPU.
The tables are printed when the program ends.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import nn

from pytorch_memlab_c import profile, set_target_gpu, simulate

VOCABULARY, WIDTH, HEADS, LAYERS, BATCH, LENGTH = 1000, 128, 4, 2, 8, 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    @profile
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    @profile
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@profile
def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, tokens: torch.Tensor) -> torch.Tensor:
    logits = model(tokens)
    loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def build(device: str) -> tuple[nn.Module, torch.optim.Optimizer, torch.Tensor]:
    """A model on the device, its optimizer, and one batch of tokens of shape (BATCH, LENGTH)."""
    torch.manual_seed(0)
    model = Transformer().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer, torch.randint(VOCABULARY, (BATCH, LENGTH), device=device)


def main(device: str) -> None:
    if device == "simulated":
        simulate.enable("a100-80gb")
        device = "cuda"
    set_target_gpu(device)
    parts = build(device)
    for _ in range(2):
        train_step(*parts)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cpu")
