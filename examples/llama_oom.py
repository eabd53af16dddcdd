"""Would one training step of a 7-billion-parameter Llama fit?

Run on a simulated GPU, it names the line that runs out of memory, and who holds the rest.

Usage: python examples/llama_oom.py [MEMORY] [--layers N] [--json FILE]     (MEMORY as "24 GB", the default)
Needs transformers and the CUDA build of PyTorch, but no GPU: PyTorch's real allocator runs over simulated memory, and
kernels are skipped. Weights are bfloat16 and never filled; the step is one sequence of 2,048 tokens under AdamW.
"""

from __future__ import annotations

import argparse
from typing import Any

from pytorch_memlab_c import LineProfiler, simulate

TOKENS = 2048


def train(config: Any) -> None:
    import torch
    from transformers import LlamaForCausalLM
    from transformers.initialization import no_init_weights

    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"), no_init_weights():
        model = LlamaForCausalLM(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.zeros(1, TOKENS, dtype=torch.long, device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()


def own_functions() -> list[Any]:
    """The model's own code, whose lines are to be named."""
    from transformers.models.llama import modeling_llama as llama

    owners = (
        llama.LlamaForCausalLM,
        llama.LlamaModel,
        llama.LlamaDecoderLayer,
        llama.LlamaAttention,
        llama.LlamaMLP,
        llama.LlamaRMSNorm,
        llama.LlamaRotaryEmbedding,
    )
    return [train, *(owner.forward for owner in owners)]


def run(memory: str, layers: int) -> LineProfiler:
    """One step on a GPU of this size; where it does not fit, the profiler knows why."""
    simulate.enable(memory=memory, capability=(9, 0))
    import torch
    from transformers import LlamaConfig

    config = LlamaConfig(
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=layers,
        num_attention_heads=32,
        vocab_size=32000,
        use_cache=False,
    )
    profiler = LineProfiler(*own_functions(), device="cuda:0", columns=("active_bytes.all.peak", "net", "hits"))
    with profiler:
        try:
            train(config)
        except torch.OutOfMemoryError as error:
            print(f"PyTorch says: {str(error).partition('. ')[0]}.")
    return profiler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("memory", nargs="?", default="24 GB")
    parser.add_argument("--layers", type=int, default=32, help="32 make 6.7 billion parameters")
    parser.add_argument("--json", help="write the report here, too")
    arguments = parser.parse_args()
    profiler = run(arguments.memory, arguments.layers)
    profiler.print_stats()
    if arguments.json:
        profiler.to_json(arguments.json)


if __name__ == "__main__":
    main()
