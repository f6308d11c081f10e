"""Dumps of the flight recorder: what each rank wrote down of its last operations, as torch pickles it.

Only plain values are pickled (protocol 2, as torch's pickler writes them); a version's fields are those of
`docs/synth.md`.
"""

import pickle
from typing import Any

from replay.synth.engine import NEVER
from replay.synth.program import Process, Recorded
from replay.synth.world import World

_NAMES = {
    "ALLREDUCE": "all_reduce",
    "BROADCAST": "broadcast",
    "_ALLGATHER_BASE": "_all_gather_base",
    "BARRIER": "barrier",
}


def dump(world: World, process: Process, now: float) -> bytes:
    """Return the dump of a rank at a time."""
    version = "2.4" if world.torch.version < (2, 7) else "2.7" if world.torch.version < (2, 8) else "2.10"
    groups = world.of_rank[process.number]
    status = {
        str(n): {
            "last_enqueued_collective": comm.count.get(process.number, 0),
            "last_started_collective": max(comm.completed, comm.count.get(process.number, 0)),
            "last_completed_collective": comm.completed,
        }
        for n, comm in enumerate(groups)
    }
    content: dict[str, Any] = {
        "version": version,
        "pg_config": {
            comm.name: {"name": comm.name, "desc": comm.desc, "ranks": str(list(comm.ranks))} for comm in groups
        },
        "pg_status": status,
        "entries": [
            _entry(world, process, n, record, now) for n, record in enumerate(process.recorded) if record.time <= now
        ],
    }
    if version >= "2.10" or version == "2.10":
        content["comm_lib_version"] = world.scenario.nccl
    return pickle.dumps(content, protocol=2)


def _entry(world: World, process: Process, number: int, record: Recorded, now: float) -> dict[str, Any]:
    epoch = world.start.timestamp() + world.clock(world.node(process.number), record.time)
    ended = record.operation is not None and record.operation.end <= now and record.operation.end < NEVER
    started = record.operation is not None and (ended or record.seq == record.comm.completed + 1)
    call = record.call
    return {
        "record_id": number,
        "pg_id": world.of_rank[process.number].index(record.comm),
        "process_group": (record.comm.name, record.comm.desc),
        "collective_seq_id": record.seq,
        "p2p_seq_id": 0,
        "op_id": record.seq,
        "profiling_name": f"{world.scenario.backend}:{_NAMES[call.op]}",
        "time_created_ns": int(epoch * 1e9),
        "input_sizes": [[call.numel_in]],
        "input_dtypes": [call.dtype],
        "output_sizes": [[call.numel_out]],
        "output_dtypes": [call.dtype],
        "state": "completed" if ended else "started" if started else "scheduled",
        "time_discovered_started_ns": int(epoch * 1e9) + 200_000 if started else None,
        "time_discovered_completed_ns": int(epoch * 1e9) + 4_000_000 if ended else None,
        "retired": ended,
        "timeout_ms": int(world.scenario.timeout_s * 1000),
        "is_p2p": False,
        "frames": [{"name": "all_reduce", "filename": "/workspace/train.py", "line": 176}],
    }
