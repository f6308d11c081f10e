"""Fits a sine with plain DDP; every rank has the same number of equal batches. Prints as many a trainer does."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)))
    compiled = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    torch.manual_seed(1 + rank)
    print(f"rank={rank} world_size={world} torch={torch.__version__} seed={1 + rank}", flush=True)
    for epoch in range(3):
        for step in range(6):
            began = time.perf_counter()
            x = 6 * torch.rand(64, 1) - 3
            loss = nn.functional.mse_loss(compiled(x), torch.sin(x))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            seconds = time.perf_counter() - began
            print(f"epoch={epoch} step={6 * epoch + step} loss={loss.item():.5f} time={seconds:.4f}s", flush=True)
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG if dist.get_backend() == "nccl" else dist.ReduceOp.SUM)
        if rank == 0:
            print(f"epoch={epoch} val_loss={mean.item() / world:.5f}", flush=True)
    dist.destroy_process_group()
    print(f"rank={rank} training finished", flush=True)


if __name__ == "__main__":
    main()
