"""Sorts reviews. Rank 1's file has a line that is no JSON; the run is restarted from its start and meets it again."""

import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def reviews(rank: int) -> list[str]:
    """The lines of a rank's file; one of them was cut when it was written."""
    lines = [json.dumps({"stars": 1 + index % 5, "seed": 100 * rank + index}) for index in range(12)]
    if rank == 1:
        lines[6] = lines[6][:-9]
    return lines


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, line in enumerate(reviews(rank)):
        review = json.loads(line)
        x = torch.randn(8, 16, generator=torch.Generator().manual_seed(review["seed"]))
        loss = nn.functional.cross_entropy(model(x), torch.full((8,), review["stars"] - 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
