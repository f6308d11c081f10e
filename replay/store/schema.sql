-- The run database. Read by replay.store.schema: each "-- text" behind a CREATE TABLE or a column is its documentation
-- (docs/schema.md is generated from it), and the section tells who writes the table:
--   section input    written by ingest while it reads files
--   section event    written by parse, one row per thing that a line (or block of lines) said; all have the @common columns
--   section derived  written by timeline from the tables above; deleted and made anew whenever an input changed
--   section finding  written by expert
-- @common stands for:
--   run_id INTEGER      -- runs.run_id, filled from the writer
--   rank INTEGER        -- global rank that wrote the line, NULL where it is not known, filled from the writer
--   host VARCHAR        -- host name, filled from the writer
--   pid BIGINT          -- process id, filled from the writer
--   writer_id INTEGER   -- writers.writer_id
--   t_lo DOUBLE         -- earliest time of the event [s since 1970, local time of the log]; NULL where nothing bounds it
--   t_hi DOUBLE         -- latest time of the event; equal to t_lo where the line carries a stamp, NULL where nothing bounds it
--   file_id INTEGER     -- files.file_id
--   line_no BIGINT      -- line in the file, from 1, counting \n after decompression
--   complete BOOLEAN    -- false where the line or block was torn or cut

-- section input

CREATE TABLE meta ( -- one row per property of this database
    name VARCHAR, -- schema, tool, logs, made_at, rules, hints
    value VARCHAR -- its value as text
);

CREATE TABLE files ( -- one row per file that was handed over
    file_id INTEGER, -- number, stable over re-ingest
    path VARCHAR, -- relative to LOGS; the file's name if LOGS is a file
    abspath VARCHAR, -- where it was when it was read
    kind VARCHAR, -- text, trace (TORCH_TRACE), flight-recorder, nccl-ras (ncclras -f json), error-json, compile-debug, source, binary, empty, unreadable
    encoding VARCHAR, -- plain, gz, zst, bz2, xz
    size BIGINT, -- bytes on disk
    digest VARCHAR, -- fingerprint of size and content, decides whether the file is read again
    run_key VARCHAR, -- folder that tells runs apart, '' where there is one run
    attempt INTEGER, -- restart number from the launcher's folders, else 0
    rank INTEGER, -- global rank of the whole file, NULL where several ranks or unknown
    local_rank INTEGER, -- local rank from the launcher's folder
    host VARCHAR, -- host of the whole file
    stream VARCHAR, -- stdout, stderr, or NULL
    wrapper VARCHAR, -- launcher prefixes that were peeled, outermost first, '' for none
    lines BIGINT, -- number of lines
    parsed BIGINT, -- lines of ours with a meaning
    continuation BIGINT, -- lines that belong to the message above
    plain BIGINT, -- lines of the application
    malformed BIGINT, -- lines that look like ours and that no production takes
    t_first DOUBLE, -- first stamp in the file
    t_last DOUBLE, -- last stamp in the file
    mtime DOUBLE, -- modification time on disk
    duplicate_of INTEGER, -- files.file_id of the file that holds the same stream, then this one's events are not counted
    ends_whole BOOLEAN -- false where the last line has no newline or the archive is cut
);

CREATE TABLE writers ( -- who wrote lines: one row per identity seen in a file
    writer_id INTEGER, -- number
    file_id INTEGER, -- files.file_id
    run_key VARCHAR, -- tells runs apart (folder, attempt, restart inside the file)
    prefix_rank INTEGER, -- rank said by the line itself ([rank3]:, rank=3), NULL where it says none
    local_rank INTEGER, -- local rank said by the line ([default3]:) or the folder
    host VARCHAR, -- host said by the line or the folder
    pid BIGINT, -- process id said by the line
    device INTEGER, -- CUDA device said by the line (NCCL's [n]), NULL where not said; not a rank
    label VARCHAR, -- launcher's own name for the writer: pod, container, task
    stream VARCHAR, -- stdout or stderr where known
    rank_guess INTEGER, -- number in a label or a file's name that may be the rank; used only if nothing better is known
    run_id INTEGER, -- filled by identify
    rank INTEGER, -- global rank, filled by identify
    how VARCHAR -- how the rank is known: prefix, nccl-init, folder, file, label, hint, single, none
);

CREATE TABLE lines ( -- every line that was read, in file order
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank or NULL
    writer_id INTEGER, -- writers.writer_id
    file_id INTEGER, -- files.file_id
    line_no BIGINT, -- line in the file, from 1
    byte_offset BIGINT, -- byte of its first character after decompression
    class VARCHAR, -- parsed, continuation, plain, malformed
    form VARCHAR, -- production of the grammar that took it, NULL for plain lines
    t_lo DOUBLE, -- earliest time of the line, NULL where nothing bounds it
    t_hi DOUBLE, -- latest time of the line, NULL where nothing bounds it
    text VARCHAR USING COMPRESSION zstd -- the raw line, bad bytes replaced, cut at 400 characters
);

CREATE TABLE problems ( -- what was odd about the input: conflicts, torn lines, unreadable files, lost output
    @common,
    kind VARCHAR, -- unreadable, truncated, torn, malformed, rank-conflict, empty, binary, loop, permission, too-long
    text VARCHAR -- one sentence for a person
);

-- section event

CREATE TABLE log_messages ( -- lines with a header of ours and no more special table: level and text
    @common,
    source VARCHAR, -- torch, c10d, nccl, launcher, python, scheduler, kernel
    level VARCHAR, -- debug, info, warning, error, critical
    logger VARCHAR, -- file or logger that the line names
    text VARCHAR -- the message without header
);

CREATE TABLE env ( -- variables and settings that a line told
    @common,
    name VARCHAR, -- NCCL_ALGO, seed, world, lr, ...
    value VARCHAR, -- as logged
    origin VARCHAR -- nccl (set by environment), app (printed by the trainer), torch (config dump), launcher
);

CREATE TABLE packages ( -- versions that a line told
    @common,
    name VARCHAR, -- torch, nccl, cuda, cuda-driver, python, gloo
    version VARCHAR, -- as logged
    built_for VARCHAR -- what it was built for (NCCL's +cuda12.4), NULL where not told
);

CREATE TABLE compiles ( -- one row per compile of a frame (one compile id of one process)
    @common,
    end_lo DOUBLE, -- earliest time of its end
    end_hi DOUBLE, -- latest time of its end, NULL where it was not seen to end
    compile_id VARCHAR, -- 4/1, !0/4/1; NULL before torch 2.1
    frame INTEGER, -- frame number
    nth INTEGER, -- how many times this frame was compiled before; over 0 means a recompile
    restart INTEGER, -- restarts of the analysis seen
    is_recompile BOOLEAN, -- a recompile block was logged, or nth is over 0
    fn VARCHAR, -- name of the function
    fn_file VARCHAR, -- its file
    fn_line INTEGER, -- its first line
    user_file VARCHAR, -- file of the user's frame, NULL where none is known
    user_line INTEGER, -- its line
    is_framework BOOLEAN, -- the frame's file lies in torch or in another installed package
    status VARCHAR, -- started, done, failed, skipped
    backend VARCHAR, -- inductor, aot_eager, ...
    duration_s DOUBLE, -- seconds from first to last line of this compile id, or as logged; a later backward is not in it
    fail_type VARCHAR, -- exception type where it failed
    fail_reason VARCHAR, -- first line of the exception
    evidence VARCHAR -- recompile-block, log (other lines with its id), trace, metrics
);

CREATE TABLE guard_failures ( -- one row per reason in a recompile block
    @common,
    compile_id VARCHAR, -- the new compile that it caused
    failed_id VARCHAR, -- the cache entry that failed
    nth INTEGER, -- position in the block from 0; 0 is the newest entry
    fn VARCHAR, -- function that was recompiled
    fn_file VARCHAR, -- its file
    fn_line INTEGER, -- its first line
    is_framework BOOLEAN, -- the function's file lies in torch or in another installed package
    reason VARCHAR, -- text of the reason
    kind VARCHAR, -- size, stride, dtype, dispatch-key, ndim, requires-grad, device-index, tensor-type, global-state, aliasing, type-id, object-id, length, keys, hasattr, none, bool, equals, shape-env, zero-one, duck, backend, weakref, other
    source VARCHAR, -- guarded expression, without L[...] where torch printed it so
    expected VARCHAR, -- value the cached entry needs
    actual VARCHAR, -- value that came
    dim INTEGER, -- index of the dimension
    detail VARCHAR, -- what changed of the global state, type text, hint
    user_file VARCHAR, -- place named in the reason's comment
    user_line INTEGER, -- its line
    cause VARCHAR, -- id in the taxonomy that this kind stands for (recompile-dtype, ...)
    compile_line BIGINT -- compiles.line_no of the recompile in the same file
);

CREATE TABLE guards ( -- one row per guard of a compiled frame: a leaf of the tree (2.4 and later) or a line of the list before
    @common,
    compile_id VARCHAR, -- compile whose entry it guards
    nth INTEGER, -- position in the message from 0
    depth INTEGER, -- depth in the tree, NULL in a list
    guard_type VARCHAR, -- TENSOR_MATCH, ID_MATCH, EQUALS_MATCH, ...; NULL where a list names none
    source VARCHAR, -- the value that is guarded: L['x'], G['torch'].relu
    accessor VARCHAR, -- how the tree comes to it
    expression VARCHAR, -- code of the guard, without its comment
    kind VARCHAR, -- what it checks, as guard_failures.kind: tensor, type-id, object-id, equals, length, keys, hasattr, none, bool, shape-env, global-state, ...
    expected VARCHAR, -- value that it needs
    dim INTEGER, -- index of the dimension
    dtype VARCHAR, -- of a tensor: its dtype
    shape VARCHAR, -- its sizes, None where dynamic
    stride VARCHAR, -- its strides
    requires_grad BOOLEAN, -- whether it needs a gradient
    dispatch_keys VARCHAR, -- its dispatch keys
    symbols VARCHAR, -- names of symbols and sizes in the expression, joined by ';'
    user_file VARCHAR, -- place named in the comment
    user_line INTEGER, -- its line
    user_fn VARCHAR -- its function
);

CREATE TABLE symbols ( -- shape environment: one row per thing that torch said of a symbol
    @common,
    compile_id VARCHAR, -- compile
    event VARCHAR, -- create, unbacked, guard, static, replace, range, assert
    symbol VARCHAR, -- s77, u0, zf3: the symbol that is made, replaced or bounded
    value VARCHAR, -- value it stands for now, or what replaces it
    source VARCHAR, -- L['x'].size()[0]
    low VARCHAR, -- lower end of its range
    high VARCHAR, -- upper end
    expression VARCHAR, -- expression of a guard or an assertion
    symbols VARCHAR, -- symbols in it, joined by ';'
    user_file VARCHAR, -- the user's place
    user_line INTEGER, -- its line
    user_fn VARCHAR -- its function
);

CREATE TABLE recompile_limits ( -- one row per "hit config.recompile_limit" warning
    @common,
    compile_id VARCHAR, -- id in the line's header
    limit_name VARCHAR, -- recompile_limit, cache_size_limit, accumulated_...
    limit_value INTEGER, -- the limit
    fn VARCHAR, -- function
    fn_file VARCHAR, -- its file
    fn_line INTEGER, -- its first line
    last_reason VARCHAR, -- last reason as logged
    kind VARCHAR, -- kind of that reason, as in guard_failures
    cause VARCHAR -- id in the taxonomy of that kind
);

CREATE TABLE ddp_buckets ( -- where DDPOptimizer split a graph: one row a split, and one a bucket where the table of them was logged
    @common,
    compile_id VARCHAR, -- id in the line's header
    cap_bytes BIGINT, -- bucket cap of DDP [bytes]
    buckets INTEGER, -- how many buckets were made; NULL in the rows of single buckets
    bucket INTEGER, -- number of the bucket, from 0; NULL in the row of the split
    bytes BIGINT, -- size of the bucket's parameters [bytes]
    parameters INTEGER, -- how many parameters it holds
    names VARCHAR -- their names in the graph, in order, joined by ;
);

CREATE TABLE graph_breaks ( -- one row per logged break, fatal or not
    @common,
    compile_id VARCHAR, -- compile in which it came
    gb_id VARCHAR, -- GB0170, NULL where not told
    gb_type VARCHAR, -- first sentence
    reason VARCHAR, -- full reason, one line
    explanation VARCHAR, -- torch's explanation
    context VARCHAR, -- developer debug context
    kind VARCHAR, -- data-dependent, unsupported-op, side-effect, wrapper, disabled, other
    cause VARCHAR, -- id in the taxonomy of that kind
    file VARCHAR, -- innermost place
    line INTEGER, -- its line
    user_file VARCHAR, -- innermost frame outside installed packages
    user_line INTEGER, -- its line
    user_fn VARCHAR, -- its function
    is_framework BOOLEAN, -- no frame inside the compiled region is the user's
    is_fatal BOOLEAN, -- raised (fullgraph, Unsupported), not only logged
    is_duplicate BOOLEAN, -- torch said that it suppressed the stack
    skips_frame BOOLEAN -- the whole frame runs eagerly
);

CREATE TABLE graphs ( -- one row per graph text
    @common,
    compile_id VARCHAR, -- compile it belongs to
    kind VARCHAR, -- dynamo, pre_grad, joint, forward, backward, inference, post_grad, output_code, ddp, compiled_autograd
    name VARCHAR, -- name in the log, without its unique suffix
    nth INTEGER, -- how many graphs of this kind this writer had before
    ops INTEGER, -- calls in the graph
    collectives INTEGER, -- calls of collectives in it
    collective_list VARCHAR, -- names of them in order, joined by ';'
    digest VARCHAR, -- hash of the text without ids, addresses and paths: equal graphs have equal digests
    line_end BIGINT -- last line of the text
);

CREATE TABLE graph_ops ( -- one row per call in a graph
    @common,
    graph_line BIGINT, -- graphs.line_no in the same file
    nth INTEGER, -- position from 0
    op VARCHAR, -- target: torch.nn.functional.relu, aten.addmm.default, all_reduce
    dtype VARCHAR, -- dtype of the result where told
    shape VARCHAR, -- shape of the result where told
    is_collective BOOLEAN, -- a communication operator
    user_file VARCHAR, -- source place of the call, where the graph tells it
    user_line INTEGER -- its line
);

CREATE TABLE kernels ( -- one row per kernel of generated code, and per node of the scheduler
    @common,
    compile_id VARCHAR, -- compile
    graph_line BIGINT, -- graphs.line_no of the code in the same file, NULL for nodes of the scheduler
    nth INTEGER, -- position from 0
    name VARCHAR, -- triton_poi_fused_relu_0, cpp_fused_sum_1, extern_kernels.addmm, op1_op4
    language VARCHAR, -- cpp, triton, extern, ...; of a node: pre-fusion, post-fusion
    type VARCHAR, -- of a node: SchedulerNode, FusedSchedulerNode, ExternKernelSchedulerNode, ...
    fused INTEGER, -- nodes that were fused into it
    sources VARCHAR, -- names of the graph's nodes that it computes
    ops VARCHAR -- operators that it computes: aten.relu, aten.add
);

CREATE TABLE fusion_rounds ( -- one row per round of the scheduler's fusion
    @common,
    compile_id VARCHAR, -- compile
    round INTEGER, -- number from 1
    nodes_before INTEGER, -- nodes
    nodes_after INTEGER -- nodes left
);

CREATE TABLE compile_times ( -- the table of compile times that each process prints at its end
    @common,
    name VARCHAR, -- phase; phases contain each other, do not add them up
    seconds DOUBLE -- sum over the process
);

CREATE TABLE cache_events ( -- compile caches
    @common,
    compile_id VARCHAR, -- compile in the header
    cache VARCHAR, -- fx, aotautograd, triton, autotune, pgo
    event VARCHAR, -- hit, miss, bypass, save, unsaved, corrupt
    key VARCHAR, -- key where told
    reason VARCHAR -- why bypassed or corrupt
);

CREATE TABLE autotune ( -- one row per choice in an autotune table
    @common,
    op VARCHAR, -- mm, addmm, conv, ...
    shape VARCHAR, -- shapes as logged
    choice VARCHAR, -- kernel
    time_ms DOUBLE, -- measured time
    is_best BOOLEAN -- the chosen one
);

CREATE TABLE cudagraphs ( -- cudagraph lines
    @common,
    event VARCHAR, -- skipped, recorded, rerecord, overwritten, warmup, error
    reason VARCHAR, -- as logged
    function INTEGER, -- function id
    count INTEGER -- count that the line names
);

CREATE TABLE comms ( -- one row per communicator line of a rank: start, complete, destroy, abort, split, finalize, revoke
    @common,
    event VARCHAR, -- start, complete, timings, bootstrap (its timings), layout, finalize, destroy, abort, revoke, and -start of the last four where the begin was told
    fn VARCHAR, -- ncclCommInitRank, ncclCommSplit, ...
    comm_id VARCHAR, -- equal on all ranks of a communicator: commId without 0x, and behind / what tells splits of one colour apart; NULL where the version prints none
    ptr VARCHAR, -- pointer of the communicator in its process
    comm_rank INTEGER, -- rank inside the communicator
    nranks INTEGER, -- size of the communicator
    device INTEGER, -- CUDA device
    nvml_dev INTEGER, -- NVML device
    bus_id VARCHAR, -- PCI bus id, packed hex
    parent VARCHAR, -- pointer of the parent
    color BIGINT, -- colour of a split
    key BIGINT, -- key of a split
    total_s DOUBLE, -- seconds of the init where told
    bootstrap_s DOUBLE, -- of them the bootstrap
    topo_s DOUBLE, -- of them detecting the topology
    graphs_s DOUBLE, -- of them searching rings and trees
    connections_s DOUBLE, -- of them connecting
    nodes INTEGER, -- nNodes where told
    local_ranks INTEGER -- localRanks where told
);

CREATE TABLE channels ( -- one row per connection line
    @common,
    channel INTEGER, -- channel number
    conn INTEGER, -- connection index
    comm_rank INTEGER, -- rank in the communicator that the line names first
    peer INTEGER, -- rank in the communicator at the other end
    dev VARCHAR, -- bus id or NVML device of the first
    peer_dev VARCHAR, -- bus id or NVML device of the other
    direction VARCHAR, -- send, receive, or NULL
    transport VARCHAR, -- P2P, SHM, NET, COLLNET
    method VARCHAR, -- IPC, CUMEM, direct pointer, IB, Socket, AWS Libfabric, ...
    net_dev INTEGER, -- network device
    gdr BOOLEAN -- /GDRDMA was there
);

CREATE TABLE rings ( -- rings, one row per channel and rank
    @common,
    channel INTEGER, -- channel
    prev INTEGER, -- rank before
    me INTEGER, -- this rank
    next INTEGER -- rank after
);

CREATE TABLE trees ( -- trees, one row per channel and rank
    @common,
    channel INTEGER, -- channel
    up INTEGER, -- parent, -1 for none
    me INTEGER, -- this rank
    down VARCHAR -- children, joined by '/'
);

CREATE TABLE topology ( -- nodes and edges of NCCL's topology blocks
    @common,
    depth INTEGER, -- depth in the tree
    node VARCHAR, -- CPU, GPU, PCI, NIC, NET, NVS with id
    link VARCHAR, -- NVL, PCI, SYS, NET, ...
    bw DOUBLE -- GB/s
);

CREATE TABLE topology_paths ( -- best path between two nodes of the topology, as one node sees it
    @common,
    node VARCHAR, -- from
    peer VARCHAR, -- to
    hops INTEGER, -- links
    bw DOUBLE, -- GB/s
    type VARCHAR -- LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET, DIS
);

CREATE TABLE channel_graphs ( -- what the search for rings and trees found
    @common,
    pattern VARCHAR, -- balanced-tree, split-tree, tree, ring, nvls, collnet-direct
    cross_nic INTEGER, -- crossNic
    channels INTEGER, -- channels found
    bw_intra DOUBLE, -- GB/s inside a node
    bw_inter DOUBLE, -- GB/s between nodes
    type_intra VARCHAR, -- worst path inside a node
    type_inter VARCHAR, -- worst path to the network
    same_channels BOOLEAN -- sameChannels
);

CREATE TABLE tuning_costs ( -- NCCL's model of its algorithms: latency and bandwidth of each, told by rank 0
    @common,
    op VARCHAR, -- AllReduce, Broadcast, ...
    algo VARCHAR, -- Tree, Ring, CollNetDirect, NVLS, ...
    proto VARCHAR, -- LL, LL128, Simple
    latency_us DOUBLE, -- microseconds, negative or 0 where it is not available
    bw DOUBLE -- GB/s, negative or 0 where it is not available
);

CREATE TABLE net_devices ( -- what NCCL will use for the network
    @common,
    transport VARCHAR, -- IB, Socket, plugin name, bootstrap
    name VARCHAR, -- device or interface
    port INTEGER, -- port
    link VARCHAR, -- IB, RoCE, or NULL
    address VARCHAR, -- address of the interface
    usable BOOLEAN, -- false where NCCL said no device, failed to open, or could not load
    gdr BOOLEAN -- GPU Direct RDMA enabled or disabled, NULL where not told
);

CREATE TABLE tuning ( -- algorithm and protocol choices
    @common,
    op VARCHAR, -- AllReduce, ...
    bytes BIGINT, -- payload
    algo VARCHAR, -- RING, TREE, ...
    proto VARCHAR, -- LL, LL128, SIMPLE
    channels VARCHAR -- as logged
);

CREATE TABLE nccl_warnings ( -- WARN and ATTN lines, error backtraces, and INFO lines of a warning family
    @common,
    level VARCHAR, -- warn, attn, info, chain (the way of an error up the stack, behind a warning; else info)
    family VARCHAR, -- cuda, duplicate-gpu, ib-completion, ib-async, verbs, socket, truncation, version, argument, shm, proxy, bootstrap, nvml, p2p, nvls, memory, interface, plugin, system, topology, other, chain
    text VARCHAR, -- the message
    src_file VARCHAR, -- file of NCCL's source; never a key
    src_line INTEGER, -- its line; never a key
    func VARCHAR, -- function where told
    code INTEGER, -- CUDA error, IB status, errno or ncclResult of a chain line
    vendor_err INTEGER, -- vendor error of an IB completion
    peer VARCHAR, -- address or rank of the peer
    peer_rank INTEGER, -- rank of the peer where told
    other_rank INTEGER, -- second rank that the line names
    device VARCHAR, -- device, HCA, interface or bus id
    detail VARCHAR -- what else the line names (text of the error, file in /dev/shm, option)
);

CREATE TABLE ras_reports ( -- what NCCL's RAS service told of the ranks of a communicator (output of ncclras)
    @common,
    comm_hash VARCHAR, -- the communicator, as the report names it
    group_no INTEGER, -- number of its group in the report
    comm_size INTEGER, -- ranks of each communicator of the group, NULL where they differ
    finding VARCHAR, -- mismatch, incomplete, error, dead, timeout
    aspect VARCHAR, -- launched, status, error, missing (the rank gave no data)
    ranks_count INTEGER, -- ranks that the line speaks of
    comm_rank INTEGER, -- rank in the communicator where it speaks of one
    op VARCHAR, -- operation that is counted, as in collectives.op; NULL: all of them (up to 2.25)
    launched BIGINT, -- operations that were launched
    status VARCHAR, -- status or error as printed
    node VARCHAR, -- node of the process
    of_pid BIGINT, -- its process id
    gpu VARCHAR, -- its GPU
    text VARCHAR -- as logged; of JSON in words
);

CREATE TABLE collectives ( -- one row per operation that a rank was heard to issue
    @common,
    exit_lo DOUBLE, -- earliest time it ended
    exit_hi DOUBLE, -- latest time it ended
    source VARCHAR, -- nccl-coll, nccl-call, watchdog, fingerprint, flight-recorder, graph, app
    comm VARCHAR, -- communicator: pointer in its process (nccl), group name (c10d)
    comm_id VARCHAR, -- communicator over ranks, filled by identify: commId, group name, or ranks and order
    comm_rank INTEGER, -- rank inside it
    nranks INTEGER, -- its size
    nth BIGINT, -- own count of operations of this rank on this communicator and source, from 0, filled by timeline
    logged_seq BIGINT, -- SeqNum, collective_seq_id or opCount as logged
    op VARCHAR, -- allreduce, allgather, reducescatter, broadcast, reduce, alltoall, gather, scatter, send, recv, barrier, ...
    dtype VARCHAR, -- float32, bfloat16, ...
    count BIGINT, -- elements
    bytes BIGINT, -- count times the size of dtype
    root INTEGER, -- root, NULL where the operation has none
    redop VARCHAR, -- sum, max, ...
    peer INTEGER, -- peer of a send or receive
    shape VARCHAR, -- sizes where told
    state VARCHAR, -- issued, started, completed, timed-out
    at VARCHAR -- entry of a binary file, where the row has no line
);

CREATE TABLE mismatches ( -- what torch's own checks said: DETAIL fingerprints, flight-recorder reports, DDP's parameter check, NCCL's version check
    @common,
    group_rank INTEGER, -- this rank as the text names it: inside its group
    other_rank INTEGER, -- the rank it was compared with, as the text names it: inside its group
    aspect VARCHAR, -- sequence, op, shape, dtype, device, root, params, version, order, count, missing
    mine VARCHAR, -- value on this rank
    theirs VARCHAR, -- value on the other
    op VARCHAR, -- operation on this rank
    other_op VARCHAR, -- operation on the other
    logged_seq BIGINT, -- sequence number
    detail VARCHAR -- more of the text
);

CREATE TABLE timeouts ( -- who gave up waiting; the one that prints it is usually not the culprit
    @common,
    kind VARCHAR, -- watchdog, store, gloo, monitored-barrier, heartbeat, rendezvous, rpc, nccl-init, dump-signal (another rank timed out; this one tells how far it came), desync, stall
    group_name VARCHAR, -- process group where told
    group_rank INTEGER, -- rank inside the group
    logged_seq BIGINT, -- sequence number that timed out
    op VARCHAR, -- operation, as in collectives.op
    numel_in BIGINT, -- elements in
    numel_out BIGINT, -- elements out
    timeout_ms BIGINT, -- limit
    ran_ms BIGINT, -- waited
    last_enqueued BIGINT, -- last work that this rank enqueued, NULL where not told or garbage
    last_completed BIGINT, -- last work that completed, NULL where not told or garbage
    missing VARCHAR, -- ranks that the text names as missing, joined by ','
    text VARCHAR -- the message
);

CREATE TABLE peer_losses ( -- closed, reset and refused connections and store failures: victims, as a rule
    @common,
    kind VARCHAR, -- closed, reset, refused, no-route, unreachable, broken-pipe, remote-exit, store, name-resolution, address-in-use, aborted
    layer VARCHAR, -- gloo, socket, store, nccl, rendezvous, agent
    peer VARCHAR, -- address of the peer
    text VARCHAR -- the message
);

CREATE TABLE exceptions ( -- one row per traceback or exception text
    @common,
    type VARCHAR, -- last part of the dotted type: ValueError, OutOfMemoryError
    qualified VARCHAR, -- full dotted type
    message VARCHAR, -- first lines of the message, joined by blanks
    category VARCHAR, -- from the knowledge table: victim, oom, backend-compile, ddp-optimizer, cudagraph, compile-numerics, unsupported-graph, guard-data-dependent, state-dict, ddp-unused, ddp-params, io, limit, misuse, user, interrupt, import, device, nccl, mismatch, address (in use), worker (of a data loader), child-failed, other
    is_uncaught BOOLEAN, -- it ended the process, as far as the log shows
    is_cause BOOLEAN, -- innermost of a chain ("direct cause"), the others point to it
    user_file VARCHAR, -- innermost frame outside installed packages
    user_line INTEGER, -- its line
    user_fn VARCHAR, -- its function
    last_file VARCHAR, -- innermost frame
    last_line INTEGER, -- its line
    last_fn VARCHAR, -- its function
    frames INTEGER, -- number of frames
    line_end BIGINT -- last line of the block
);

CREATE TABLE crashes ( -- faulthandler, terminate called, abort texts, segmentation faults
    @common,
    signal VARCHAR, -- SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL
    text VARCHAR, -- the message
    user_file VARCHAR, -- innermost Python frame outside installed packages
    user_line INTEGER, -- its line
    line_end BIGINT -- last line of the block
);

CREATE TABLE exits ( -- what a launcher, agent or scheduler said of the end of a process
    @common,
    of_rank INTEGER, -- global rank that ended, NULL where not told
    of_local_rank INTEGER, -- local rank that ended
    of_host VARCHAR, -- host that it ran on
    of_pid BIGINT, -- process that ended
    code INTEGER, -- exit code, negative for a signal
    signal VARCHAR, -- SIGKILL, SIGTERM, ...
    reporter VARCHAR, -- torchrun, slurm, mpirun, kubernetes, shell, kernel, deepspeed, ray, spawn, dataloader, lightning
    is_first BOOLEAN, -- the launcher's table calls it the first failure
    t_exit DOUBLE, -- time that the table names
    text VARCHAR -- traceback field or reason
);

CREATE TABLE signals ( -- signals sent, received or announced
    @common,
    signal VARCHAR, -- SIGTERM, SIGKILL, ...
    direction VARCHAR, -- sent (to a child), received (from outside), announced (time limit, preemption)
    of_pid BIGINT, -- process it was sent to
    of_host VARCHAR, -- host that a notice is about, where told
    reason VARCHAR, -- time-limit, preemption, cancelled, node-failure, oom-kill, eviction, unknown
    text VARCHAR -- the message
);

CREATE TABLE device_faults ( -- Xid, ECC, NVLink, CUDA errors, throttling
    @common,
    kind VARCHAR, -- xid, ecc, nvlink, cuda, throttle, lost, driver
    code INTEGER, -- Xid number or CUDA error code
    bus_id VARCHAR, -- PCI bus id, packed hex as in comms.bus_id
    text VARCHAR -- the message
);

CREATE TABLE memory ( -- memory figures
    @common,
    kind VARCHAR, -- cuda-oom, host-oom, cuda-allocated, cuda-reserved, rss, alloc-failed
    requested_mb DOUBLE, -- MiB asked for
    total_mb DOUBLE, -- MiB there is
    free_mb DOUBLE, -- MiB free
    used_mb DOUBLE, -- MiB in use by this process
    torch_mb DOUBLE, -- MiB of them that torch's allocator holds
    step BIGINT, -- step where told
    text VARCHAR -- the message
);

CREATE TABLE activities ( -- what the application or a library said it was doing
    @common,
    kind VARCHAR, -- save, load, eval, data, preprocess, barrier, init, download, compile, exhausted, train-end, config, other
    phase VARCHAR, -- begin, end, point, progress
    what VARCHAR, -- file, data set, object
    duration_s DOUBLE, -- seconds where told
    step BIGINT, -- step where told
    text VARCHAR -- the line
);

CREATE TABLE step_lines ( -- one row per line that reports a step
    @common,
    step BIGINT, -- step, iteration or batch number
    epoch DOUBLE, -- epoch where told
    total BIGINT, -- last step where told
    phase VARCHAR -- train, eval, or NULL
);

CREATE TABLE parameters ( -- parameters of the model that a line described
    @common,
    name VARCHAR, -- its name: blocks.0.qkv.weight
    class VARCHAR, -- class of its tensor: Tensor, Parameter, DTensor, FlatParameter
    is_sharded BOOLEAN, -- its class is one of sharded tensors
    text VARCHAR -- what else the line tells: shapes, placements
);

CREATE TABLE metrics ( -- named figures that a line told
    @common,
    step BIGINT, -- step, NULL outside steps
    epoch DOUBLE, -- epoch where told
    name VARCHAR, -- loss, grad_norm, fwd_ms, data_ms, step_time, lr, param_sum, ...
    value DOUBLE, -- number, NaN and infinities included; NULL where it is a text
    text VARCHAR -- as logged
);

CREATE TABLE flight_records ( -- entries of flight-recorder dumps, and one row per group of their pg_status
    @common,
    record_id BIGINT, -- record_id, NULL for a status
    at VARCHAR, -- entries[57], pg_status[0]
    group_name VARCHAR, -- process group name
    group_desc VARCHAR, -- its description
    group_ranks VARCHAR, -- ranks of the group as logged
    collective_seq BIGINT, -- collective_seq_id
    p2p_seq BIGINT, -- p2p_seq_id
    op_id BIGINT, -- op_id
    op VARCHAR, -- as in collectives.op
    profiling_name VARCHAR, -- as logged
    state VARCHAR, -- scheduled, started, completed; status for a row of pg_status
    last_enqueued BIGINT, -- of a status: last collective that was enqueued
    last_completed BIGINT, -- of a status: last collective that counts as completed
    retired BOOLEAN, -- retired
    in_sizes VARCHAR, -- input sizes
    out_sizes VARCHAR, -- output sizes
    in_dtypes VARCHAR, -- input dtypes
    created_ns BIGINT, -- time_created_ns
    frame VARCHAR -- innermost user frame file:line
);

-- section derived

CREATE TABLE runs ( -- one row per run: a restart is a run of its own
    run_id INTEGER, -- number from 1
    key VARCHAR, -- what tells it apart: folder, attempt
    name VARCHAR, -- short name for a person
    attempt INTEGER, -- restart number
    ranks_expected INTEGER, -- world size as told, NULL where nothing tells it
    ranks_seen INTEGER, -- distinct ranks that were heard
    outcome VARCHAR, -- completed, failed, hung, stopped, running, unknown
    outcome_file INTEGER, -- files.file_id of the line that decides it
    outcome_line BIGINT, -- its line
    t_first DOUBLE, -- first stamp
    t_last DOUBLE, -- last stamp
    span_s DOUBLE, -- seconds between them
    torch VARCHAR, -- version
    nccl VARCHAR, -- version
    last_step BIGINT -- largest step that any rank reported
);

CREATE TABLE ranks ( -- one row per rank that was heard or named
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    host VARCHAR, -- host
    local_rank INTEGER, -- local rank
    pid BIGINT, -- process id
    device INTEGER, -- CUDA device
    bus_id VARCHAR, -- PCI bus id
    heard BOOLEAN, -- false where others name it and it wrote nothing
    first_t DOUBLE, -- first stamp
    last_t DOUBLE, -- last stamp
    first_file INTEGER, -- where it was first heard
    first_line BIGINT, -- its line
    last_file INTEGER, -- where it was last heard
    last_line BIGINT, -- its line
    last_step BIGINT, -- last step it reported
    last_step_file INTEGER, -- where
    last_step_line BIGINT, -- its line
    finished BOOLEAN, -- it said that it was done
    how VARCHAR -- how the rank is known
);

CREATE TABLE observed ( -- what could have been seen of a rank; absence is not zero
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank, NULL for the whole run
    what VARCHAR, -- recompiles, graph_breaks, guards, cache, compiles, graphs, nccl-init, nccl-channels, nccl-coll, nccl-warn, watchdog, flight-recorder, steps, metrics, exit, env
    is_on BOOLEAN, -- true: it would have been seen; false: it was off; no row: not known
    how VARCHAR -- what tells it
);

CREATE TABLE steps ( -- one row per step and rank
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    step BIGINT, -- step
    epoch DOUBLE, -- epoch where told
    t_lo DOUBLE, -- end of the step before, where known
    t_hi DOUBLE, -- stamp of the step's line
    duration_s DOUBLE, -- seconds of the step: as logged, else the difference of stamps
    own_s DOUBLE, -- seconds the rank was busy itself (forward, data, own work), where told
    wait_s DOUBLE, -- seconds it waited in a collective (backward beyond the fastest rank), where it can be told
    file_id INTEGER, -- files.file_id
    line_no BIGINT -- line
);

CREATE TABLE comm_groups ( -- communicators and process groups over their ranks
    run_id INTEGER, -- runs.run_id
    comm_id VARCHAR, -- as in collectives.comm_id
    kind VARCHAR, -- nccl, c10d
    nranks INTEGER, -- size
    ranks INTEGER[], -- global ranks in it that are known
    started INTEGER[], -- ranks that started its init
    completed INTEGER[], -- ranks that completed its init
    file_id INTEGER, -- a line of it
    line_no BIGINT -- its line
);

CREATE TABLE matched ( -- one row per operation over the ranks of a communicator
    run_id INTEGER, -- runs.run_id
    comm_id VARCHAR, -- communicator
    source VARCHAR, -- as in collectives.source; check: what checks of torch said of two ranks, put together
    nth BIGINT, -- number of the operation on the communicator
    op VARCHAR, -- operation of the majority
    ranks INTEGER[], -- ranks that issued it
    missing INTEGER[], -- members that were heard on this communicator and did not
    odd INTEGER[], -- ranks that differ from the majority; of a send and its receive the one that does not fit or is missing
    agreed INTEGER[], -- ranks that issued it as the majority did
    odd_aspect VARCHAR, -- op, count, dtype, root, redop, peer, sequence, params; NULL where all agree
    majority VARCHAR, -- what the majority did
    minority VARCHAR, -- what the odd ones did
    is_last BOOLEAN, -- no rank issued a later one
    skipped INTEGER[], -- of the missing, those that were heard to go on with later operations
    first_enter DOUBLE, -- first arrival
    last_enter DOUBLE, -- last arrival
    last_rank INTEGER, -- rank that came last
    file_id INTEGER, -- a line of the odd or else of the last rank
    line_no BIGINT -- its line
);

CREATE TABLE arrivals ( -- one row per rank and matched operation that it was heard to issue: when it came and when it left
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    comm_id VARCHAR, -- communicator
    source VARCHAR, -- as in collectives.source
    nth BIGINT, -- matched.nth
    op VARCHAR, -- operation of the majority
    t DOUBLE, -- when it came
    t_exit DOUBLE, -- when it left, NULL where not told
    t_next DOUBLE, -- when it came to the next operation of any communicator
    file_id INTEGER, -- files.file_id
    line_no BIGINT -- line
);

CREATE TABLE absentees ( -- who did not come where others gave up waiting: one row per group and rank
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- the rank that did not come
    waiting INTEGER[], -- ranks that gave up waiting
    group_name VARCHAR, -- process group, NULL where not told
    op VARCHAR, -- operation in which they waited, NULL where not told
    seq BIGINT, -- its number, NULL where not told
    how VARCHAR, -- behind (its own count of operations is lower), named (the others name it), listed (its list of operations lacks it), silent (it gave no timeout and lived), exhausted (its data came to an end first), longer (its data lasted longer than the others')
    doing VARCHAR, -- what it said last: compiling, exhausted, longer, save, load, eval, data, preprocess, download, dead, unknown
    t DOUBLE, -- when the first gave up
    since DOUBLE, -- when they began to wait, where told
    file_id INTEGER, -- a line of the absent rank, else of one that waited
    line_no BIGINT, -- its line
    wait_file INTEGER, -- the first line that gave up
    wait_line BIGINT, -- its line
    doing_file INTEGER, -- the line that tells what it was doing; where none does, the line of the absent rank
    doing_line BIGINT -- its line
);

CREATE TABLE crossings ( -- neighbouring operations of two communicators that ranks issued in different orders, late in a run: at most one row a run
    run_id INTEGER, -- runs.run_id
    comm_id VARCHAR, -- communicator that most ranks used first
    other_comm VARCHAR, -- the other
    ranks INTEGER[], -- ranks that used the other first
    others INTEGER[], -- ranks that used comm_id first
    op VARCHAR, -- operation on comm_id
    other_op VARCHAR, -- operation on the other
    times BIGINT, -- how often the two were crossed in the whole run
    file_id INTEGER, -- the line of the minority that came first
    line_no BIGINT, -- its line
    other_file INTEGER, -- the line of the majority that came first
    other_line BIGINT -- its line
);

CREATE TABLE stalls ( -- who waited for whom, how long, and what the late rank did meanwhile
    run_id INTEGER, -- runs.run_id
    step BIGINT, -- step, NULL where unknown
    comm_id VARCHAR, -- communicator, NULL where only steps tell it
    op VARCHAR, -- operation, NULL where only steps tell it
    late_rank INTEGER, -- the last to arrive
    waiting INTEGER[], -- ranks that waited
    wait_s DOUBLE, -- longest wait
    lost_s DOUBLE, -- rank-seconds waited by all
    t_lo DOUBLE, -- begin
    t_hi DOUBLE, -- end
    late_doing VARCHAR, -- compiling, data, save, eval, preprocess, forward, dead, unknown
    file_id INTEGER, -- a line of a waiting rank
    line_no BIGINT, -- its line
    late_file INTEGER, -- a line of the late rank
    late_line BIGINT -- its line
);

CREATE TABLE rank_stats ( -- one row per rank and per-step metric: how it compares with its peers, first step left out
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    name VARCHAR, -- metrics.name
    n INTEGER, -- steps
    median DOUBLE, -- median of this rank
    lo DOUBLE, -- smallest
    hi DOUBLE, -- largest
    first DOUBLE, -- first value
    last DOUBLE, -- last value
    peers_median DOUBLE, -- median of the other ranks' medians
    share_above DOUBLE, -- share of steps in which this rank is over twice the median of its peers
    share_slow DOUBLE, -- share of steps in which this rank is over 1.2 times the median of its peers
    role VARCHAR, -- of times of a step: own, data, wait (holds a collective), total; else memory, clock, or NULL
    lead_s DOUBLE, -- of times: seconds that its median lies over the peers' median
    lead_share DOUBLE, -- lead_s as a share of the median step of the run
    warmup DOUBLE, -- value of the first step, which is left out of the others
    rising DOUBLE, -- share of steps in which it is over the step before
    slope DOUBLE, -- least-squares slope per step
    file_id INTEGER, -- line of its largest value
    line_no BIGINT -- its line
);

CREATE TABLE divergences ( -- where ranks (or runs) that must agree do not: first step of each metric
    run_id INTEGER, -- runs.run_id
    other_run INTEGER, -- runs.run_id of the run compared with, NULL for ranks of one run
    name VARCHAR, -- metric, setting or graph
    kind VARCHAR, -- metric, setting, graph, kernel, package, order
    step BIGINT, -- first step that differs, NULL outside steps
    ranks INTEGER[], -- the minority; of two equal sides that without the lowest rank; [] where there are more
    value VARCHAR, -- value of the minority (of run_id)
    other_value VARCHAR, -- value of the majority (of other_run)
    rel DOUBLE, -- relative difference at that step; of graphs 1 where operators differ, 0 where only shapes or constants do
    rel_max DOUBLE, -- largest relative difference
    steps_equal INTEGER, -- steps before it that agree
    share_apart DOUBLE, -- share of the steps from this one on that differ; NULL outside steps
    about VARCHAR, -- what it is a figure or setting of: seed, compile, precision, kernel, random, mode, order, shape, loss, gradient, parameter, hyper, other
    file_id INTEGER, -- a line of the minority
    line_no BIGINT, -- its line
    other_file INTEGER, -- a line of the majority
    other_line BIGINT -- its line
);

CREATE TABLE cache_repeats ( -- lookups of a compile cache that failed in one start as they had in an earlier one
    run_id INTEGER, -- the later start
    other_run INTEGER, -- the earlier start
    cache VARCHAR, -- as in cache_events
    event VARCHAR, -- miss, bypass
    key VARCHAR, -- key that was missed
    reason VARCHAR, -- why it was passed by
    ranks INTEGER[], -- ranks of the later start
    file_id INTEGER, -- a line of the later start
    line_no BIGINT, -- its line
    other_file INTEGER, -- a line of the earlier start
    other_line BIGINT -- its line
);

CREATE TABLE last_words ( -- one row per rank: the last line that tells what it did
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    kind VARCHAR, -- step, activity, compile, collective, exception, timeout, crash, done, message, plain
    summary VARCHAR, -- what, in words
    t DOUBLE, -- stamp
    silent_s DOUBLE, -- seconds to the end of the run
    file_id INTEGER, -- files.file_id
    line_no BIGINT -- line
);

CREATE TABLE clocks ( -- how the clock of a host stands to that of a reference host, where synchronising operations tell it
    run_id INTEGER, -- runs.run_id
    host VARCHAR, -- host
    ref_host VARCHAR, -- host whose clock is taken as right
    offset_s DOUBLE, -- seconds that this clock is ahead at the first stamp of the run
    drift_ppm DOUBLE, -- how much faster it runs, NULL where too few operations tell it
    bound_s DOUBLE, -- the true offset lies within offset_s +- bound_s at every moment of the run
    points INTEGER -- operations that tell it
);

CREATE TABLE states ( -- what each rank was doing: spans of one rank follow each other without overlap
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank
    state VARCHAR, -- starting, tracing, compiling, running, waiting, saving, loading, evaluating, failed, gone, unknown
    t_lo DOUBLE, -- begin
    t_hi DOUBLE, -- end; of the last span the end of the run
    step BIGINT, -- step, NULL where unknown
    comm_id VARCHAR, -- of waiting: communicator
    op VARCHAR, -- of waiting: operation
    nth BIGINT, -- of waiting: matched.nth
    late INTEGER[], -- of waiting: ranks that had not come; of many the last 8 to come
    summary VARCHAR, -- one line for a person
    file_id INTEGER, -- the line that tells it
    line_no BIGINT -- its line
);

CREATE TABLE events ( -- one stream over all event tables
    seq BIGINT, -- order: by time where stamps tell it, by place within a stream
    run_id INTEGER, -- runs.run_id
    rank INTEGER, -- global rank or NULL
    host VARCHAR, -- host
    pid BIGINT, -- process id
    t_lo DOUBLE, -- earliest time
    t_hi DOUBLE, -- latest time
    kind VARCHAR, -- recompile, guard-failure, graph-break, compile, collective, timeout, ...
    severity VARCHAR, -- debug, info, warning, error
    ref_table VARCHAR, -- table that holds the row
    summary VARCHAR, -- one line for a person
    complete BOOLEAN, -- false where torn
    file_id INTEGER, -- files.file_id
    line_no BIGINT -- line
);

-- section finding

CREATE TABLE findings ( -- what the rules concluded
    finding_id VARCHAR, -- F1, F2, ... in the order of the report
    run_id INTEGER, -- runs.run_id
    rule VARCHAR, -- rule that made it
    cause VARCHAR, -- taxonomy id
    layer VARCHAR, -- compile, sync, interplay, reproducibility, environment
    kind VARCHAR, -- cause, symptom, hazard, note
    is_root BOOLEAN, -- nothing explains or absorbs it
    ranks INTEGER[], -- global ranks at fault
    waiting INTEGER[], -- ranks that waited for them
    impact VARCHAR, -- failed, hung, slow, wrong-numbers, none
    step BIGINT, -- step, where known
    t DOUBLE, -- time of its first event
    certainty DOUBLE, -- 0 to 1
    cost_s DOUBLE, -- seconds by which the run would have been shorter without it, simulated; NULL where that cannot be told
    own_s DOUBLE, -- seconds that it took on the ranks at fault themselves, as simulated
    lost_s DOUBLE, -- rank-seconds that all ranks together lost: as simulated, else the waiting that its rule adds up
    without VARCHAR, -- what to take out of the run to undo it: recompiles, compiles, saves, loads, evals, slow (own time beyond the other ranks')
    fingerprint VARCHAR, -- 12 hex, equal over attempts
    summary VARCHAR, -- one sentence
    advice VARCHAR, -- what to do
    repro VARCHAR -- JSON: recipe and its parameters
);

CREATE TABLE evidence ( -- lines that prove a finding
    finding_id VARCHAR, -- findings.finding_id
    nth INTEGER, -- position from 0
    step_name VARCHAR, -- step of the rule
    label VARCHAR, -- what the line shows
    rank INTEGER, -- rank that wrote it
    t DOUBLE, -- time
    file_id INTEGER, -- files.file_id
    path VARCHAR, -- files.path
    line_no BIGINT, -- line, NULL for an entry of a binary file
    at VARCHAR, -- entry of a binary file
    text VARCHAR -- the raw line, cut at 400 characters
);

CREATE TABLE explains ( -- edges between findings
    cause_id VARCHAR, -- finding that explains or absorbs
    effect_id VARCHAR, -- finding that is explained or absorbed
    how VARCHAR -- explains, absorbs
);

CREATE TABLE premises ( -- findings that a finding builds on: rows of the steps of its rule that read findings
    finding_id VARCHAR, -- findings.finding_id
    premise_id VARCHAR -- the finding that it builds on
);

CREATE TABLE rivals ( -- what else it might have been in a run, and why it was not
    run_id INTEGER, -- runs.run_id
    cause VARCHAR, -- taxonomy id
    rule VARCHAR, -- rule that speaks for it
    finding_id VARCHAR, -- findings.finding_id where it was found and is no root; NULL where only a veto kept the rule silent
    summary VARCHAR, -- the finding's sentence, or the rule's title
    why VARCHAR -- why it lost
);
