"""What a Llama's forward lines keep for backward.

One training step of 7 billion parameters on a simulated 80 GB GPU, plain and with gradient checkpointing.

Usage: python examples/llama_saved.py [--gpu h100-80gb] [--layers 32] [--tokens 2048] [--checkpointing | --both]
Needs the CUDA build of PyTorch and `pip install transformers`; no GPU. Kernels are skipped and nothing is downloaded:
the weights are meaningless, the allocations are those of the real model. The lines are those of transformers' own
source.
"""

from __future__ import annotations

import argparse
import inspect
from typing import Any

from pytorch_memlab_c import LineProfiler, simulate


def build(layers: int) -> Any:
    """A Llama of the 7-billion-parameter size (with 32 layers), in bfloat16 on the GPU."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(num_hidden_layers=layers, use_cache=False)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = LlamaForCausalLM(config)
        torch.set_default_dtype(torch.float32)
    return model.train()


def forward_functions() -> list[Any]:
    """The functions of transformers' Llama that run in forward."""
    from transformers.models.llama import modeling_llama

    classes = [
        c for c in vars(modeling_llama).values() if inspect.isclass(c) and c.__module__ == modeling_llama.__name__
    ]
    forwards = [inspect.unwrap(c.forward) for c in classes if "forward" in vars(c)]
    plain = [modeling_llama.apply_rotary_pos_emb, modeling_llama.rotate_half]
    return [*forwards, *(inspect.unwrap(f) for f in plain)]


def train_step(model: Any, optimizer: Any, tokens: Any) -> None:
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def show_step(options: argparse.Namespace, checkpointing: bool) -> None:
    import torch

    model = build(options.layers)
    if checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.zeros(1, options.tokens, dtype=torch.long, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    with LineProfiler(train_step, *forward_functions(), device="cuda:0", saved=True) as profiler:
        train_step(model, optimizer, tokens)
    count = sum(parameter.numel() for parameter in model.parameters())
    name = "with gradient checkpointing" if checkpointing else "plain"
    print(f"\n===== {count / 1e9:.2f} billion parameters, {options.tokens} tokens, {name}; simulated {options.gpu}")
    print(f"peak: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB allocated")
    profiler.print_stats(train_step)
    show_saved(profiler)


def show_saved(profiler: LineProfiler) -> None:
    frame = profiler.to_dataframe(kind="saved")
    mib = frame[["saved", "saved.run", "saved.inputs", "saved.parameters", "saved.backward", "saved.hooks"]] / 2**20
    mib.insert(0, "code", frame["code"].str.strip().str.slice(0, 70))
    order = mib.sort_values(["saved", "saved.backward"], ascending=False)
    print("\nMiB saved for backward, by line")
    print(order.head(25).to_string(float_format=lambda value: f"{value:,.1f}"))
    print(f"in all: {mib['saved'].sum():,.1f} MiB of activations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--gpu", default="h100-80gb", help="a preset of the simulated GPU")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--checkpointing", action="store_true", help="only with gradient checkpointing")
    parser.add_argument("--both", action="store_true", help="plain, then with gradient checkpointing")
    options = parser.parse_args()
    simulate.enable(options.gpu)
    for checkpointing in [False, True] if options.both else [options.checkpointing]:
        show_step(options, checkpointing)


if __name__ == "__main__":
    main()
