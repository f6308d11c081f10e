"""Gathers the scores of an evaluation; one rank drops a malformed sample first, and its share has another size."""

import time

import torch
import torch.distributed as dist

SAMPLES = 40


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    weights = torch.linspace(-1, 1, 8)
    for step in range(6):
        samples = torch.randn(SAMPLES, 8, generator=torch.Generator().manual_seed(10 * step + rank))
        if (rank, step) == (2, 4):
            samples = samples[samples[:, 0] < samples[:, 0].max()]
        scores = samples @ weights
        gathered = [torch.empty_like(scores) for _ in range(world)]
        dist.all_gather(gathered, scores)
        mean = torch.cat(gathered).mean().item()
        print(f"{time.strftime('%H:%M:%S')} rank:{rank} eval_step:{step} score:{mean:+.4f} n:{len(scores)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
