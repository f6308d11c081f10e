"""Classifies animals. One shard names a species that the table of classes lacks; its loader fails on it."""

import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

CLASSES = {"cat": 0, "dog": 1, "heron": 2, "newt": 3}


class Animals(Dataset[tuple[Tensor, int]]):
    """A shard; that of rank 2 was exported by another version of the labelling tool."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.names = [list(CLASSES)[i % 4] for i in range(16 * 12)]
        if shard == 2:
            self.names[16 * 8 + 5] = "axolotl"

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator().manual_seed(1000 * self.shard + index)
        return torch.randn(24, generator=generator), CLASSES[self.names[index]]


@record
def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(11)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    began = time.perf_counter()
    for step, (x, y) in enumerate(DataLoader(Animals(rank), batch_size=16, num_workers=1), 1):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        rate = step / (time.perf_counter() - began)
        print(f"Epoch 0 | Step {step}/12 | Loss {loss.item():.3f} | {rate:.1f} it/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
