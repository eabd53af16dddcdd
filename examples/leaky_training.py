"""A training job that runs out of memory after some hundred steps, because its metrics keep every batch.

docs/snapshots.md finds the line from the job's memory snapshot alone. On a simulated GPU:
pytorch-memlab simulate --gpu a100-40gb --snapshot job.pickle examples/leaky_training.py
"""

import torch
from torch import nn

VOCABULARY, WIDTH, TOKENS = 32_000, 1024, 2048


class Metrics:
    def __init__(self):
        self.scores = []

    def update(self, logits):
        self.scores.append(torch.softmax(logits.detach(), dim=-1))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(8)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        hidden = self.layers(self.embed(tokens))
        return self.head(hidden)


def train_step(model, optimizer, metrics):
    tokens = torch.zeros(TOKENS, dtype=torch.long, device="cuda")
    logits = model(tokens)
    loss = nn.functional.cross_entropy(logits, tokens)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    metrics.update(logits)


def main():
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    metrics = Metrics()
    for _ in range(1000):
        train_step(model, optimizer, metrics)


if __name__ == "__main__":
    main()
