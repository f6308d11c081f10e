"""A toy language model whose second rank is killed from outside at step 6, as the kernel does when memory runs out."""

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
    torch.manual_seed(5)
    model = DistributedDataParallel(nn.Sequential(nn.Embedding(256, 32), nn.Linear(32, 256)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    torch.manual_seed(50 + rank)
    tokens = 0
    for step in range(12):
        text = torch.randint(0, 256, (8, 65))
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        if rank == 1 and step == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tokens += text.numel()
        print(
            f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] [rank{rank}] iter {step:4d} | lm loss {loss.item():.3E} | "
            f"grad norm {norm:.3f} | tokens {tokens}",
            flush=True,
        )
        time.sleep(0.1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
