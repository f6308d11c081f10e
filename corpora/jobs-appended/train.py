"""Fits a line. In the first job rank 2 gets a SIGKILL at step 5, as from the host's out-of-memory killer."""

import os
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(10):
        if os.environ["JOB"] == "1" and rank == 2 and step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.perf_counter()
        loss = model(torch.randn(16, 8, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        seconds = time.perf_counter() - began
        print(f"{stamp} [rank {rank}] step={step} loss={loss.item():.4f} step_time={seconds:.3f}s", flush=True)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} [rank {rank}] training finished", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
