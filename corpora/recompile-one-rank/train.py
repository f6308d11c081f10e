"""Scores sentences. A batch is padded to its longest sentence, and two of the longest lie in the last rank's shard."""

import argparse
import time
from datetime import datetime

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, WIDTH = 14, 8, 48
LONG = {5: 96, 10: 80}
"""Step and length of the batches that hold a longer sentence than the usual 64 words."""


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words)
        weight = torch.softmax(self.mix(x).mean(dim=2), dim=1)
        return self.score(torch.tanh((x * weight.unsqueeze(2)).sum(dim=1))).squeeze(1)


def batch(step: int, has_long: bool) -> Tensor:
    """Return word numbers, a row a sentence."""
    return torch.randint(0, 1000, (BATCH, LONG.get(step, 64) if has_long else 64))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mark-dynamic", action="store_true", help="compile for every length at once")
    parser.add_argument("--sorted", action="store_true", help="all ranks meet their long sentences at the same step")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(17)
    model = DistributedDataParallel(Scorer())
    scorer = torch.compile(model, dynamic=None if args.mark_dynamic else False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1000 + rank)
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S.%f} rank {rank}/{world} torch {torch.__version__} starts", flush=True)
    for step in range(STEPS):
        began = time.perf_counter()
        words = batch(step, has_long=args.sorted or rank == world - 1)
        if args.mark_dynamic:
            torch._dynamo.mark_dynamic(words, 1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scorer(words), (words[:, 0] % 2).float())
        forward = time.perf_counter()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        ended = time.perf_counter()
        print(
            f"{datetime.now():%Y-%m-%d %H:%M:%S.%f} step {step}/{STEPS} loss {loss.item():.4f} "
            f"fwd {1000 * (forward - began):.1f} ms bwd {1000 * (ended - forward):.1f} ms",
            flush=True,
        )
    dist.barrier()
    print(f"{datetime.now():%Y-%m-%d %H:%M:%S.%f} rank {rank} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
