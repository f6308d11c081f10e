"""What launchers, schedulers, pods, shells and the kernel say of the end of processes: own values, real wordings."""

import pytest
from failure_lines import Identity, parse, parse_counted
from hypothesis import given
from hypothesis import strategies as st

AGENT = "1129 22:53:10.351000 18006 torch/distributed/elastic/multiprocessing/api.py:1028] "
OLD = "WARNING:torch.distributed.elastic.multiprocessing.api:"


@pytest.mark.parametrize(
    ("line", "pid", "signal"),
    [
        (f"W{AGENT}Sending process 4711 closing signal SIGTERM", 4711, "SIGTERM"),
        (f"W{AGENT}Closing process 4711 via signal SIGTERM", 4711, "SIGTERM"),
        (f"W{AGENT}Unable to shutdown process 4711 via 15, forcefully exiting via 9", 4711, "SIGKILL"),
        (
            f"W{AGENT}Unable to shutdown process 4711 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
            4711,
            "SIGKILL",
        ),
        (f"{OLD}Sending process 4711 closing signal SIGTERM", 4711, "SIGTERM"),
        (
            "[2023-11-29 12:00:00,123] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process "
            "4711 closing signal SIGTERM",
            4711,
            "SIGTERM",
        ),
    ],
)
def test_signals_that_the_agent_sends(line, pid, signal):
    assert parse(line).of("signals", "direction", "of_pid", "signal") == [("sent", pid, signal)]


@pytest.mark.parametrize(
    "text",
    [
        "Received 15 death signal, shutting down workers",
        "Received Signals.SIGTERM death signal, shutting down workers",
        "Got termination signal: 15",
    ],
)
def test_signals_that_the_agent_receives(text):
    assert parse(f"W{AGENT}{text}").of("signals", "direction", "signal", "reason") == [
        ("received", "SIGTERM", "unknown")
    ]


@pytest.mark.parametrize(("code", "signal"), [(-9, "SIGKILL"), (-11, "SIGSEGV"), (1, None), (137, "SIGKILL")])
def test_the_first_failure_that_the_agent_sees(code, signal):
    rows = parse(f"E{AGENT}failed (exitcode: {code}) local_rank: 2 (pid: 77) of binary: /usr/bin/python3")
    assert rows.of("exits", "reporter", "code", "signal", "of_local_rank", "of_pid") == [
        ("torchrun", code, signal, 2, 77)
    ]


def test_an_agent_that_lost_the_rendezvous():
    rows = parse(
        f"W{AGENT}The node 'host-a_77_0' has failed to send a keep-alive heartbeat to the rendezvous 'job7' due to an "
        "error of type RendezvousConnectionError."
    )
    assert rows.of("peer_losses", "layer", "kind", "peer") == [("rendezvous", "store", "host-a_77_0")]


TABLE = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-02-03_04:05:06
  host      : node-b.cluster
  rank      : 9 (local_rank: 1)
  exitcode  : -15 (pid: 4712)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 4712
[2]:
  time      : 2026-02-03_04:05:07
  host      : node-b.cluster
  rank      : 10 (local_rank: 2)
  exitcode  : 1 (pid: 4713) 
  error_file: /tmp/attempt_0/2/error.json
  traceback : Traceback (most recent call last):
    File "/srv/env/lib/python3.12/site-packages/torch/x.py", line 1, in wrapper
      return f()
    File "/srv/job/train.py", line 27, in main
      load()
  ValueError: corrupt shard 17
  
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-02-03_04:05:06
  host      : node-b.cluster
  rank      : 8 (local_rank: 0)
  exitcode  : -9 (pid: 4711) (SIGKILL)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4711
============================================================
"""  # noqa: W291, W293


def test_the_table_of_failures_is_one_row_a_process():
    rows, counts = parse_counted(TABLE)
    assert rows.of("exits", "of_rank", "of_local_rank", "of_pid", "of_host", "code", "signal", "is_first") == [
        (9, 1, 4712, "node-b.cluster", -15, "SIGTERM", False),
        (10, 2, 4713, "node-b.cluster", 1, None, False),
        (8, 0, 4711, "node-b.cluster", -9, "SIGKILL", True),
    ]
    assert [r["text"] for r in rows.tables["exits"]][1] == "ValueError: corrupt shard 17"
    assert rows.tables["exits"][0]["t_exit"] == 1770091506.0
    assert counts.plain == counts.malformed == 0


def test_a_traceback_in_the_table_is_an_exception_of_the_rank_that_it_names():
    found = [r for r in parse(TABLE).tables["exceptions"] if r["type"] != "ChildFailedError"]
    (row,) = found
    assert (row["rank"], row["pid"], row["category"], row["user_line"]) == (10, 4713, "user", 27)


def test_the_launchers_own_exception_is_of_no_rank():
    (row,) = [r for r in parse(TABLE).tables["exceptions"] if r["type"] == "ChildFailedError"]
    assert (row["rank"], row["category"]) == (None, "child-failed")


def test_the_table_of_torch_1_9():
    rows = parse(
        "***************************************\n            train.py FAILED            \n"
        "=======================================\nRoot Cause:\n[0]:\n  time: 2021-08-13_02:52:54\n"
        "  rank: 3 (local_rank: 3)\n  exitcode: -9 (pid: 3180)\n  error_file: <N/A>\n"
        '  msg: "Signal 9 (SIGKILL) received by PID 3180"\n=======================================\n'
        "Other Failures:\n[1]:\n  time: 2021-08-13_02:52:55\n  rank: 1 (local_rank: 1)\n  exitcode: 1 (pid: 3178)\n"
        "***************************************\n"
    )
    assert rows.of("exits", "of_rank", "code", "is_first") == [(3, -9, True), (1, 1, False)]


def test_memory_that_ran_out_in_a_rank_that_only_the_table_shows():
    table = TABLE.replace(
        "ValueError: corrupt shard 17",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 362.00 MiB. GPU 3 has a total capacity of "
        "31.00 GiB of which 245.56 MiB is free.",
    )
    assert parse(table).of("memory", "rank", "kind", "requested_mb", "total_mb") == [(10, "cuda-oom", 362.0, 31744.0)]


def test_what_the_agents_agreed_on_are_settings():
    head = "I0108 19:49:34.110000 5121 torch/distributed/launcher/api.py:194] "
    rows = parse(
        f"{head}Starting elastic_operator with launch configs:\n{head}  entrypoint       : train.py\n{head}  "
        f"min_nodes        : 2\n"
    )
    assert rows.of("env", "name", "value", "origin") == [
        ("entrypoint", "train.py", "launcher"),
        ("min_nodes", "2", "launcher"),
    ]


EXITS = [
    ("srun: error: node07: task 3: Killed", "slurm", 3, None, -9, "SIGKILL"),
    ("srun: error: node07: task 3: Out Of Memory", "slurm", 3, None, -9, "SIGKILL"),
    ("srun: error: node07: task 3: Segmentation fault (core dumped)", "slurm", 3, None, -11, "SIGSEGV"),
    ("srun: error: node07: task 3: Exited with exit code 2", "slurm", 3, None, 2, None),
    (
        "mpirun noticed that process rank 3 with PID 71 on node node07 exited on signal 9 (Killed).",
        "mpirun",
        3,
        71,
        -9,
        "SIGKILL",
    ),
    (
        "prterun noticed that process rank 3 with PID 71 on node node07 exited on signal 11 (Segmentation fault).",
        "mpirun",
        3,
        71,
        -11,
        "SIGSEGV",
    ),
    ("  Process name: [[41,1],3]\n  Exit code:    6", "mpirun", 3, None, 6, None),
    ("   Process name: [prterun-node07-12@1,3]\n   Exit code: 6", "mpirun", 3, None, 6, None),
    ("=   RANK 3 PID 71 RUNNING AT node07\n=   KILLED BY SIGNAL: 9 (Killed)", "mpirun", 3, 71, -9, "SIGKILL"),
    ("=   RANK 3 PID 71 RUNNING AT node07\n=   EXIT CODE: 6", "mpirun", 3, 71, 6, None),
    ("x1000c0s0b0n0.hsn: rank 3 died from signal 6 and dumped core", "mpirun", 3, None, -6, "SIGABRT"),
    ("x1000c0s0b0n0.hsn: rank 3 exited with code 255", "mpirun", 3, None, 255, None),
    ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "mpirun", 3, None, None, None),
    ("    Exit Code:    137", "kubernetes", None, None, 137, "SIGKILL"),
    ("command terminated with exit code 137", "kubernetes", None, None, 137, "SIGKILL"),
    (
        "/var/spool/job/slurm_script: line 12: 4711 Killed                  python train.py",
        "shell",
        None,
        4711,
        -9,
        "SIGKILL",
    ),
    ("run.sh: line 3: 4711 Bus error               (core dumped) python train.py", "shell", None, 4711, -7, "SIGBUS"),
    ("Segmentation fault (core dumped)", "shell", None, None, -11, "SIGSEGV"),
    ("Killed", "shell", None, None, -9, "SIGKILL"),
    ("make: *** [train] Error 137", "shell", None, None, 137, "SIGKILL"),
    (
        "[2026-01-02 03:04:05,678] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', 't.py'] exits with "
        "return code = -9",
        "deepspeed",
        None,
        None,
        -9,
        "SIGKILL",
    ),
    (
        "(raylet, ip=10.0.0.7) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
        "ray",
        None,
        None,
        -9,
        "SIGKILL",
    ),
    (
        "[Mon Jun  3 09:31:11 2024] Memory cgroup out of memory: Killed process 4711 (pt_main_thread) total-vm:1kB",
        "kernel",
        None,
        4711,
        -9,
        "SIGKILL",
    ),
    (
        "[ 1234.567890] Out of memory: Kill process 4711 (python) score 900 or sacrifice child",
        "kernel",
        None,
        4711,
        -9,
        "SIGKILL",
    ),
    (
        "Jun  3 09:31:11 node07 kernel: [12345.678] python[4711]: segfault at 0 ip 0000 sp 0000 error 4 in "
        "libx.so[7f+1]",
        "kernel",
        None,
        4711,
        -11,
        "SIGSEGV",
    ),
    (
        "(raylet, ip=10.0.0.7) A worker died or was killed while executing a task by an unexpected system error. To "
        "troubleshoot",
        "ray",
        None,
        None,
        None,
        None,
    ),
]


@pytest.mark.parametrize(("text", "expected"), [(text, tuple(expected)) for text, *expected in EXITS])
def test_ends_of_processes(text, expected):
    assert parse(text).of("exits", "reporter", "of_rank", "of_pid", "code", "signal") == [expected]


def test_deepspeed_names_the_local_rank_in_the_command():
    text = (
        "[2026-01-02 03:04:05,678] [ERROR] [launch.py:325:sigkill_handler] "
        "['python', '-u', 't.py', '--local_rank=3', '--lr', '1'] exits with return code = 1"
    )
    assert parse(text).of("exits", "of_local_rank", "code") == [(3, 1)]


def test_a_notice_of_a_lost_host_names_it_and_a_failed_job_names_none():
    assert parse("srun: error: Node failure on n2").of("signals", "of_host", "reason") == [("n2", "node-failure")]
    failed = "slurmstepd: error: *** STEP 9.0 ON n1 FAILED (non-zero exit code or other failure mode) ***"
    assert parse(failed).of("signals", "of_host") == []
    cancelled = (
        "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-11-30T10:00:33 "
        "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    )
    assert parse(cancelled).of("signals", "of_host", "reason") == [(None, "node-failure")]


def test_a_range_of_tasks_is_a_row_each():
    rows = parse("srun: error: node07: tasks 0-2,5: Exited with exit code 1")
    assert [r["of_rank"] for r in rows.tables["exits"]] == [0, 1, 2, 5]
    assert len(parse("srun: error: node07: tasks 0-99999999: Killed").tables["exits"]) == 4096


CHILDREN = [
    ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL", "spawn", 1, -9),
    ("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 3", "spawn", 1, 3),
    (
        "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory.",
        "dataloader",
        None,
        -7,
    ),
    (
        "subprocess.CalledProcessError: Command '['/usr/bin/python', 't.py']' returned non-zero exit status 2.",
        "shell",
        None,
        2,
    ),
]


@pytest.mark.parametrize(("raised", "reporter", "local", "code"), CHILDREN)
def test_ends_of_children_that_exceptions_tell(raised, reporter, local, code):
    rows = parse(f'Traceback (most recent call last):\n  File "/srv/t.py", line 1, in f\n{raised}')
    assert rows.of("exits", "reporter", "of_local_rank", "code") == [(reporter, local, code)]
    assert rows.one("exceptions")["category"] in {"child-failed", "worker", "limit"}


ANNOUNCED = [
    ("slurmstepd: error: *** STEP 88.0 ON node07 CANCELLED AT 2026-01-27T14:51:17 DUE TO TIME LIMIT ***", "time-limit"),
    ("slurmstepd: error: *** JOB 88 ON node07 CANCELLED AT 2026-01-27T14:51:17 DUE TO PREEMPTION ***", "preemption"),
    (
        "slurmstepd: error: *** JOB 88 ON node07 CANCELLED AT 2026-01-27T14:51:17 DUE TO NODE FAILURE, SEE "
        "SLURMCTLD LOG FOR DETAILS ***",
        "node-failure",
    ),
    ("slurmstepd: error: *** JOB 88 ON node07 CANCELLED AT 2026-01-27T14:51:17 ***", "cancelled"),
    (
        "slurmstepd-node07: error: *** STEP 88.0 ON node07 CANCELLED AT 2026-01-27T14:51:17 DUE to SIGNAL "
        "Terminated ***",
        "cancelled",
    ),
    ("srun: error: Node failure on node07", "node-failure"),
    ("=>> PBS: job killed: walltime 3626 exceeded limit 3600", "time-limit"),
    ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time-limit"),
    ("    Reason:       Evicted", "eviction"),
    ("Warning  Evicted  2m  kubelet  The node was low on resource: ephemeral-storage.", "eviction"),
]


@pytest.mark.parametrize(("text", "reason"), ANNOUNCED)
def test_stops_from_outside_are_announced(text, reason):
    assert parse(text).of("signals", "direction", "reason") == [("announced", reason)]


@pytest.mark.parametrize(
    "text",
    [
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=88.0. Some of your processes may have been "
        "killed by the cgroup out-of-memory handler.",
        "slurmstepd: error: Detected 2 oom_kill events in StepId=88.batch.",
        "    Reason:       OOMKilled",
    ],
)
def test_host_memory_that_ran_out(text):
    rows = parse(text)
    assert rows.of("memory", "kind") == [("host-oom",)]
    assert rows.of("exits", "signal", "code") == [("SIGKILL", -9)]


FAULTS = [
    (
        "[Mon Jun  3 09:31:11 2024] NVRM: Xid (PCI:0000:52:00): 79, pid=12, name=python, GPU has fallen off the bus.",
        "xid",
        79,
        "52000",
    ),
    ("[12345.6] NVRM: Xid (PCI:0000:52:00): 48, pid=12, DBE (double bit error)", "xid", 48, "52000"),
    ("Jun  3 09:31:11 node07 kernel: NVRM: Xid (PCI:0000:52:00): 94, Contained", "xid", 94, "52000"),
    (
        "[1.0] NVRM: API mismatch: the client has the version 550.54.15, but this kernel module has the version "
        "535.104.05.",
        "driver",
        None,
        None,
    ),
    (
        "[1.0] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress",
        "nvlink",
        12028,
        "c1000",
    ),
    ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda", 700, None),
    ("RuntimeError: CUDA error: device-side assert triggered", "cuda", 710, None),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "ecc", 214, None),
    ("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", "nvlink", 220, None),
    (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update",
        "driver",
        None,
        None,
    ),
    ("RuntimeError: No CUDA GPUs are available", "driver", None, None),
    ("Failed to initialize NVML: Driver/library version mismatch", "driver", None, None),
    (
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted "
        "on non supported HW",
        "driver",
        804,
        None,
    ),
    ("        HW Thermal Slowdown               : Active", "throttle", None, None),
    ("Unable to determine the device handle for GPU0000:52:00.0: Unknown Error", "lost", None, None),
]


@pytest.mark.parametrize(("text", "kind", "code", "bus"), FAULTS)
def test_faults_of_devices(text, kind, code, bus):
    assert parse(text).of("device_faults", "kind", "code", "bus_id") == [(kind, code, bus)]


def test_the_devices_error_behind_an_error_of_nccl():
    nccl = (
        "torch.distributed.DistBackendError: NCCL error in: /x/NCCLUtils.cpp:77, unhandled cuda error, NCCL "
        "version 2.26.2"
    )
    head = f"[rank1]: {nccl}\n[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n"
    rows = parse(f"{head}[rank1]: Cuda failure 999 'unknown error'")
    assert rows.of("device_faults", "rank", "code") == [(1, 999)]
    assert rows.one("exceptions")["category"] == "nccl"
    rows = parse(f"{head}[rank1]: Cuda failure 'out of memory'")
    assert rows.of("memory", "rank", "kind") == [(1, "cuda-oom")]
    assert rows.one("exceptions")["category"] == "oom"


def test_what_is_not_slowed_down_is_no_fault():
    assert not parse("        HW Thermal Slowdown               : Not Active").tables["device_faults"]


def test_a_device_side_assert_is_told_once_a_process():
    line = (
        "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelect: block: [{},0,0], thread: [1,0,0] "
        "Assertion `srcIndex < n` failed."
    )
    rows = parse("\n".join(line.format(n) for n in range(40)), Identity(rank=2))
    assert rows.of("device_faults", "rank", "code") == [(2, 710)]


OOM = [
    (
        "CUDA out of memory. Tried to allocate 362.00 MiB. GPU 0 has a total capacity of 31.00 GiB of which 243.50 "
        "MiB is free. Including non-PyTorch memory, this process has 30.00 GiB memory in use. Of the allocated "
        "memory 29.58 GiB",
        362.0,
        31744.0,
        243.5,
        30720.0,
    ),
    (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacty of 31.00 GiB of which 1.00 GiB "
        "is free. Process 12 has 4.00 GiB memory in use. Including non-PyTorch memory, this process has 26.00 "
        "GiB memory in use.",
        2048.0,
        31744.0,
        1024.0,
        26624.0,
    ),
    (
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.00 GiB total capacity; 36.00 GiB already "
        "allocated; 1.00 GiB free; 36.60 GiB reserved in total by PyTorch) If reserved",
        2048.0,
        39936.0,
        1024.0,
        36864.0,
    ),
    (
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.00 GiB total capacity; 10.00 GiB already "
        "allocated; 21.75 MiB free; 56.79 MiB cached)",
        20.0,
        11264.0,
        21.75,
        10240.0,
    ),
    (
        "HIP out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 64.00 GiB of which 0 bytes "
        "is free.",
        20.0,
        65536.0,
        0.0,
        None,
    ),
    ("CUDA error: out of memory", None, None, None, None),
]


@pytest.mark.parametrize(("text", "requested", "total", "free", "used"), OOM)
def test_device_memory_by_version(text, requested, total, free, used):
    rows = parse(f"[rank1]: torch.OutOfMemoryError: {text}")
    assert rows.of("memory", "rank", "kind", "requested_mb", "total_mb", "free_mb", "used_mb") == [
        (1, "cuda-oom", requested, total, free, used)
    ]
    assert rows.one("exceptions")["category"] == "oom"


@pytest.mark.parametrize("pools", ["", " with 24.00 MiB allocated in private pools (e.g., CUDA Graphs),"])
def test_what_torch_holds_of_the_devices_memory(pools):
    rows = parse(
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
        "of 79.10 GiB of which 100.00 MiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in "
        f"use. Of the allocated memory 60.00 GiB is allocated by PyTorch,{pools} and 1.00 GiB is reserved by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF"
    )
    assert rows.of("memory", "used_mb", "torch_mb") == [(79 * 1024.0, 61 * 1024.0)]


def test_host_memory_that_could_not_be_had():
    rows = parse(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 67108864 bytes. Error code 12 (Cannot allocate memory)"
    )
    assert rows.of("memory", "kind", "requested_mb") == [("alloc-failed", 64.0)]
    assert rows.one("exceptions")["category"] == "oom"


def test_engines_and_horovod_that_wait():
    rows = parse(
        "(EngineCore pid=12) No available shared memory broadcast block found in 60 seconds. This typically happens\n"
        "[2023-02-24 10:00:00.114: W /horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be "
        "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 "
        "seconds. \nMissing ranks:\n2: [alltoall.a]\nMissing ranks:\n5: [alltoall.b]\nend\n"
    )
    assert sorted(rows.of("timeouts", "kind", "timeout_ms", "missing")) == [
        ("rpc", 60000, None),
        ("stall", 60000, "2,5"),
    ]


def test_versions_that_tools_list():
    rows = parse(
        "nvidia-nccl-cu12         2.18.1\n[pip3] torch==2.3.0\nNvidia driver version: 535.104.05\nCUDA used to "
        "build PyTorch: 12.1\n"
    )
    assert rows.of("packages", "name", "version", "built_for") == [
        ("nccl", "2.18.1", None),
        ("torch", "2.3.0", None),
        ("cuda-driver", "535.104.05", None),
        ("torch", None, "cuda12.1"),
    ]


PIECES = st.sampled_from([*TABLE.splitlines(), *(t for t, *_ in EXITS), *(t for t, _ in ANNOUNCED), "plain", ""])


@given(st.lists(PIECES, max_size=60))
def test_every_line_is_classed_once(pieces):
    text = "\n".join([*pieces, "end"])
    rows, counts = parse_counted(text)
    assert counts.lines == text.count("\n") + 1 == counts.parsed + counts.continuation + counts.plain + counts.malformed
    assert len([r for r in rows.tables["exits"] if r["reporter"] == "torchrun"]) <= sum(
        p.startswith("[") and p.endswith("]:") for p in pieces
    )


def test_lightning_tags_the_childs_rank():
    rows = parse(
        "[rank: 3] Child process with PID 71 terminated with code -11. Forcefully terminating all other processes"
    )
    assert rows.of("exits", "of_rank", "of_pid", "code", "signal") == [(3, 71, -11, "SIGSEGV")]
