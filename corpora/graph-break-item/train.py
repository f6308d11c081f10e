"""Clips its activations by a value that it fetches from a tensor: torch.compile has to break the graph there."""

import json
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


class Clipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 64)
        self.second = nn.Linear(64, 1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        largest = hidden.abs().max().item()
        if largest > 3.0:
            hidden = hidden * (3.0 / largest)
        return self.second(torch.relu(hidden))


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    model = DistributedDataParallel(torch.compile(Clipped(), backend="aot_eager"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(20 + rank)
    for step in range(10):
        began = time.perf_counter()
        x = torch.randn(32, 16)
        loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        took = time.perf_counter() - began
        record = {"time": round(time.time(), 3), "rank": rank, "step": step, "loss": round(loss.item(), 5)}
        print(json.dumps(record | {"step_time_s": round(took, 4)}), flush=True)
    dist.destroy_process_group()
    print(json.dumps({"time": round(time.time(), 3), "rank": rank, "event": "finished"}), flush=True)


if __name__ == "__main__":
    main()
