"""Reads shards and sums gradients by hand. Two things are wrong that have nothing to do with each other."""

import time
from datetime import datetime
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor, nn

SHARDS = {f"shard-{number:03d}.bin": number for number in range(20)}


def read(rank: int, step: int) -> Tensor:
    """A batch; rank 3's disk is slow, rank 1's list names a shard that nobody has."""
    if rank == 3:
        time.sleep(0.35)
    name = f"shard-{step + (80 if rank == 1 and step == 14 else 0):03d}.bin"
    return torch.randn(32, 24, generator=torch.Generator().manual_seed(SHARDS[name] + 100 * rank))


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(20):
        times = [time.perf_counter()]
        batch = read(rank, step)
        times.append(time.perf_counter())
        loss = model(batch).square().mean()
        loss.backward()
        times.append(time.perf_counter())
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        times.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad()
        data, work, wait = (1000 * (b - a) for a, b in pairwise(times))
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
        print(
            f"{now} step {step}/20 loss {loss.item():.4f} data_ms {data:.1f} fwd_ms {work:.1f} allreduce_ms {wait:.1f}",
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
