"""Denoises signals, with meters for the time of a batch and of its data. One rank's files lie on a slow disk."""

import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

BATCHES, SLOW_RANK, SLOW_READ_S = 20, 1, 0.35


class Meter:
    """Last value and mean of all."""

    def __init__(self) -> None:
        self.last = self.total = 0.0
        self.count = 0

    def update(self, value: float) -> None:
        self.last, self.total, self.count = value, self.total + value, self.count + 1

    def __str__(self) -> str:
        return f"{self.last:6.3f} ({self.total / self.count:6.3f})"


def read(rank: int) -> Iterator[Tensor]:
    """Yield batches as the disk gives them."""
    for _ in range(BATCHES):
        if rank == SLOW_RANK:
            time.sleep(SLOW_READ_S)
        yield torch.randn(16, 1, 256)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    denoise = nn.Sequential(nn.Conv1d(1, 8, 9, padding=4), nn.ReLU(), nn.Conv1d(8, 1, 9, padding=4))
    model = DistributedDataParallel(denoise)
    optimizer = torch.optim.Adam(model.parameters())
    batch_time, data_time = Meter(), Meter()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} rank {rank} of {dist.get_world_size()} starts", flush=True)
    began = time.perf_counter()
    for i, clean in enumerate(read(rank)):
        data_time.update(time.perf_counter() - began)
        loss = nn.functional.mse_loss(model(clean + 0.3 * torch.randn_like(clean)), clean)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        batch_time.update(time.perf_counter() - began)
        print(
            f"{time.strftime('%Y-%m-%d %H:%M:%S')} Epoch: [0][{i:3d}/{BATCHES}]\tTime {batch_time}\tData {data_time}\t"
            f"Loss {loss.item():.4e}",
            flush=True,
        )
        began = time.perf_counter()
    dist.barrier()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} rank {rank} done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
