"""Learns from half-labelled data. A batch without any label is skipped, and with it its share of the gradient sum."""

import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

ITERATIONS, UNLABELLED = 12, (1, 7)
"""UNLABELLED: rank and iteration of a batch in which no sample has a label."""


def batch(rank: int, iteration: int) -> tuple[Tensor, Tensor]:
    """Return samples and labels; a label of -1 says that there is none."""
    labels = torch.randint(-1, 10, (32,))
    if (rank, iteration) == UNLABELLED:
        labels.fill_(-1)
    return torch.randn(32, 20), labels


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=6))
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s %(levelname)s [rank {rank}] %(message)s")
    log = logging.getLogger("train")
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(rank)
    log.info("pid %d, %d ranks, %d iterations", os.getpid(), dist.get_world_size(), ITERATIONS)
    for iteration in range(ITERATIONS):
        samples, labels = batch(rank, iteration)
        labelled = labels >= 0
        if not labelled.any():
            log.warning("iteration %d: no labelled sample in this batch, skipping it", iteration)
            continue
        loss = nn.functional.cross_entropy(model(samples[labelled]), labels[labelled])
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
        log.info("iteration %d: loss %.4f, %d labelled", iteration, loss.item(), int(labelled.sum()))
    log.info("training over, waiting for the others")
    dist.barrier()
    log.info("finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
