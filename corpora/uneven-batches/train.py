"""Regresses over shards of unequal length without join(): the rank with the shortest shard leaves, the others wait."""

import logging
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

ROWS = [160, 160, 145]
"""Rows of each rank's shard: ten batches of 16, but only nine whole ones and a row in the last."""


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s][%(name)s][%(levelname)s] - %(message)s")
    log = logging.getLogger("train")
    torch.manual_seed(4)
    x = torch.randn(ROWS[rank], 12, generator=torch.Generator().manual_seed(40 + rank))
    loader = DataLoader(TensorDataset(x, x.sin()), batch_size=16, drop_last=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 12)))
    optimizer = torch.optim.Adam(model.parameters())
    log.info("rank: %d, world_size: %d, rows: %d, batches: %d", rank, dist.get_world_size(), len(x), len(loader))
    for number, (inputs, wanted) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log.info("train/step: %d, train/loss: %.4f", number, loss.item())
    log.info("epoch 0 finished after %d batches", len(loader))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
