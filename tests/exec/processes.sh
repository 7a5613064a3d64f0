#!/usr/bin/env bash
# processes.sh PROGRAM: steps of several processes, a rank and an emulated device each, joined by NCCL's stand-in: their
# gradients are those of the unsharded model, and what fails says so in the library's words.
set -u
program=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export EMULATED_NCCL_FILES=$out # a rank that is killed leaves its file
port=$((20000 + $$ % 20000))
wrong=0
first_last=0 # 1: rank 0 has the last device
other=       # options of rank 1 only
stopped=0    # 1: rank 1 of two is stopped in a step

# processes COUNT ARGUMENTS...: what rank R prints goes to $out/R.txt; false when one failed. The limit is longer than the
# 60 s after which the program itself says what it waits for.
processes()
{
    local count=$1 rank pid pids=() code=0
    shift
    rm -f "$out"/*.txt
    port=$((port + 1))
    for ((rank = count - 1; rank >= 0; rank--)); do
        RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$((first_last ? count - 1 - rank : rank)) MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            EMULATED_DEVICES=$count \
            timeout 90 "$program" run --backend cuda "$@" ${other:+$( ((rank == 1)) && echo "$other")} \
            >"$out/$rank.txt" 2>&1 &
        pids+=($!)
    done
    if [[ $stopped == 1 ]]; then
        sleep 4
        pid=$(pgrep -P "${pids[0]}")
        kill -STOP "$pid"
        wait "${pids[1]}" || code=$?
        kill -KILL "$pid"
        wait "${pids[0]}"
        return $code
    fi
    for pid in "${pids[@]}"; do
        wait "$pid" || code=$?
    done
    return $code
}

# ranks COUNT OPTIONS...: a step of a small model.
ranks()
{
    local count=$1
    shift
    processes "$count" --gpus "$count" --model "${model:-longhaul-3m}" \
        --set "${shape:-layers=2,hidden=64,heads=4,kv_heads=4,head_dim=16,ffn=96,vocab=96}" --seq "${seq:-96}" \
        --dtype "${dtype:-f32}" "${check---check}" "$@"
}

# fails WHAT: a test that has gone wrong, with what the ranks have said.
fails()
{
    echo "$1"
    cat "$out"/*.txt
    wrong=$((wrong + 1))
}

# right OPTIONS...: some ranks and the right gradients. A third of these are run a day, and all at night (CHECK_ALL).
day=${CHECK_DAY:-$(($(date +%s) / 86400))}
right()
{
    day=$((day + 1))
    [[ -n ${CHECK_ALL-} || $((day % 3)) == 0 ]] || return 0
    ranks "$@" || fails "wrong: $*"
}

# says WORDS OPTIONS...: it fails, and some rank says why.
says()
{
    local words=$1
    shift
    if ranks "$@" || ! grep -qF "$words" "$out"/*.txt; then
        fails "not said: $words"
    fi
}

# differ WORDS OPTION VALUE: both of two processes say that rank 1, with one option more, is refused.
differ()
{
    other="$2 $3" ranks 2 --strategy ulysses --profile ideal --timeout 20 && fails "ran: $2 $3 on rank 1 only"
    [[ $(grep -lF "$1" "$out"/[01].txt | wc -l) == 2 ]] || fails "not said by both: $1"
}

right 2 --strategy ulysses --profile ideal --weights zero3
right 3 --strategy ring --profile ideal --weights zero1
right 2 --strategy ring --profile torchtitan --rotate all-gather
right 2 --strategy ring --profile torchtitan --rotate all-to-all
right 3 --strategy ring --rotate needed
right 3 --strategy ring --core-plan burst
dtype=bf16 right 2 --strategy ring --rotate needed
dtype=bf16 right 2 --strategy ring --core-plan token-ring
right 2 --strategy fpdt --profile deepspeed --chunk 48
right 2 --strategy megatron-sp
right 2 --strategy local --pp 2 --profile ideal --batch 2
right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --profile ideal --weights replicated
right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --profile ideal --weights replicated --helper-weights shard
dtype=bf16 right 2 --strategy ulysses --profile ideal --attention-by fused
# A kernel that is first launched in a step waits until the device is idle, which it is not while another rank waits for
# this one.
dtype=bf16 right 2 --strategy sppo --pp 2 --subsequences 4 --attention-by fused
dtype=bf16 right 2 --strategy local --pp 2 --pipeline terapipe --subsequences 4 --attention-by fused
dtype=bf16 right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --weights zero1 --attention-by fused
# Experts with unequal numbers of rows, and latent attention: heads of two sizes, latents that head ranks gather.
shape=hidden=32,heads=4,layers=2,vocab=61,experts=6,experts_per_token=4,expert_ffn=20
model=qwen3-30b-a3b shape=$shape,kv_heads=4,head_dim=8 right 2 --strategy ulysses --ep 2 --routing dirichlet:1,7 --batch 2
model=qwen3-30b-a3b shape=$shape,kv_heads=4,head_dim=8 right 3 --strategy local --ep 3 --routing dirichlet:1,7 --batch 3
shape=$shape,kv_heads=4,head_dim=10,rope_dim=4,v_dim=7,kv_latent=8,ffn=48,shared_ffn=20,dense_layers=1
model=deepseek-v2-lite shape=$shape right 2 --strategy ring
model=deepseek-v2-lite shape=$shape right 2 --strategy ulysses --mla-exchange latent --ep 2 --routing dirichlet:1,7
unset shape
# Device memory that is registered with NCCL: nothing else is sent, and no first use is left to a step.
right 2 --strategy ulysses --profile ideal --weights zero3 --nccl-buffers registered
right 3 --strategy ring --rotate needed --nccl-buffers registered
right 2 --strategy local --pp 2 --pipeline msp --subsequences 4 --weights zero1 --nccl-buffers registered
# As many as a node has.
for strategy in "ulysses --weights zero3" "ring --weights zero1" "2d --hp 2" "fpdt --chunk 8" "megatron-sp" \
    "sppo --pp 2 --subsequences 4"; do
    shape=layers=2,hidden=64,heads=8,kv_heads=8,head_dim=8,ffn=96,vocab=96 seq=64 right 8 --strategy $strategy
done
# Two messages that cross: each rank's host comes to what it sends first, on streams and links of their own.
cat >"$out/crossing.ir" <<'END'
longhaul schedule 1
mesh g=2
arena hbm=1024
group g axes=g
stream compute compute
stream there comm
stream back comm
buffer a0 hbm f32 [4] activation persistent at=0
buffer b0 hbm f32 [4] activation persistent at=512
op 0 fill compute count=4 writes a0
op 1 send there group=g by=+1 bytes=16 guard g<1 waits 0 reads a0
op 2 send back group=g by=-1 channel=1 bytes=16 guard g>=1 waits 0 reads a0
op 3 recv back group=g by=+1 channel=1 bytes=16 guard g<1 writes b0
op 4 recv there group=g by=-1 bytes=16 guard g>=1 writes b0
END
processes 2 "$out/crossing.ir" --timeout 30 || fails "wrong: messages that cross"

# A note is printed once, not by every process.
ranks 2 --strategy sppo --pp 2 || fails "wrong: a step of sppo"
heard=$(grep -h "^note: no activations are offloaded " "$out"/[01].txt | wc -l)
[[ $heard == 1 ]] || fails "said $heard times, not once: that nothing is offloaded"

# Every op of the compute and communication streams has records of CUPTI.
ranks 2 --strategy ulysses --profile ideal --weights zero3 --steps 1 --cupti -o "$out/trace" ||
    fails "wrong: a trace of two processes"
grep -q '^# device=emulated device 0$' "$out/trace/ops.csv" || fails "the trace has another device"
first_last=1 ranks 2 --strategy ulysses --profile ideal --weights zero3 --steps 1 -o "$out/last" ||
    fails "wrong: a trace of the last device"
grep -q '^# device=emulated device 1$' "$out/last/ops.csv" || fails "the trace has not the device of its rank"
grep -qE '^# nccl=2\.[0-9]+\.[0-9]+$' "$out/trace/ops.csv" || fails "the trace has no version of NCCL"
grep -hoE 'cupti_ops=[0-9]+ of [0-9]+' "$out/trace/ops.csv" |
    awk -F'[= ]' '{ ok = $2 == $4 && $2 > 0 } END { exit !ok }' ||
    fails "not every op has its time: $(grep -ho 'cupti_ops=.*' "$out/trace/ops.csv")"

export EMULATED_CUDNN=90501
dtype=bf16 ranks 2 --strategy ulysses --profile ideal || fails "wrong: an older cuDNN"
heard=$(grep -h "^attention: note: some or all of it is computed by .*: cuDNN: version 9.5.1 " "$out"/[01].txt | wc -l)
[[ $heard == 1 ]] || fails "said $heard times, not once: that attention is computed by kernels of longhaul"
dtype=bf16 says "cuDNN: error: version 9.5.1 " 2 --strategy ulysses --profile ideal --attention-by fused
unset EMULATED_CUDNN

# A collective that never ends, on the device, in the host's call, and before the step; and a member that never comes.
short=(2 --strategy ulysses --profile ideal --weights replicated --timeout 3)
EMULATED_NCCL_STOPS=device says "(all_reduce, stream" "${short[@]}"
EMULATED_NCCL_STOPS=host says "(all_reduce, stream" "${short[@]}"
missing="not all members have arrived within 3 s"
EMULATED_NCCL_ABSENT=1 says "NCCL: error: rank 0 cannot connect all ranks: $missing" "${short[@]}"
EMULATED_NCCL_LATE=1 says "NCCL: error: rank 0 cannot connect group hp: $missing" "${short[@]}"
EMULATED_NCCL_STOPS=open says "NCCL: error: rank 0 cannot connect group replica: $missing" "${short[@]}"

# Rank 1 has nothing to do until rank 0 has made twelve slow copies: the run moves on while any rank does.
cat >"$out/late.ir" <<'END'
longhaul schedule 1
mesh g=2
arena hbm=1024 pinned=512
group g axes=g
stream compute compute
stream there comm
stream d2h d2h
buffer a0 hbm f32 [4] activation persistent at=0
buffer b0 hbm f32 [4] activation persistent at=512
buffer c0 pinned f32 [4] activation persistent at=0
op 0 fill compute count=4 writes a0
END
for i in {1..12}; do
    echo "op $i d2h d2h bytes=16 guard g<1 waits $((i - 1)) reads a0 writes c0"
done >>"$out/late.ir"
cat >>"$out/late.ir" <<'END'
op 13 send there group=g by=+1 bytes=16 guard g<1 waits 12 reads a0
op 14 recv there group=g by=-1 bytes=16 guard g>=1 writes b0
END
EMULATED_COPY_S=0.25 processes 2 "$out/late.ir" --stall 1.5 --warmup 0 --steps 1 ||
    fails "wrong: a rank that waits longer than --stall for one that works"
EMULATED_NCCL_STOPS=device says "the step has stalled: rank" \
    2 --strategy ulysses --profile ideal --weights replicated --stall 2
for r in 0 1; do
    grep -qE "has failed or ended, and its own message says why; here rank $r: op|stalled: rank $r: op" "$out/$r.txt" ||
        fails "rank $r does not say what it waited for"
done

# Processes that would do different things, and another number of them than of ranks, end before they wait.
differ "rank 1 has another schedule, or other options, than rank 0" --epilogues fused
differ "rank 1 has another schedule, or other options, than rank 0" --seed 2
differ "rank 1 has another schedule, or other options, than rank 0" --attention-by tiles
processes 2 --gpus 4 --model longhaul-3m --seq 96 --strategy ulysses --timeout 20 && fails "2 processes ran 4 ranks"
[[ $(grep -l "has 4 ranks, and 2 processes were started for it" "$out"/[01].txt | wc -l) == 2 ]] ||
    fails "not said by both: 4 ranks of 2 processes"

# Host memory: two ranks of one machine need more than it has; of two machines each has enough for its own, which is
# known when the processes have connected, so that one alone waits for the other.
most=$(awk '/^MemAvailable:/ { printf "%.0f", $2 * 1024 * 0.6 / 4096 }' /proc/meminfo)
cat >"$out/much.ir" <<END
longhaul schedule 1
mesh g=2
arena hbm=1024 pinned=$((most * 4096))
group g axes=g
stream compute compute
buffer a0 hbm f32 [4] activation persistent at=0
op 0 fill compute count=4 writes a0
END
processes 2 "$out/much.ir" --timeout 20 && fails "two ranks have more memory than the machine"
[[ $(grep -lE "error: 2 ranks need .*, and this machine has " "$out"/[01].txt | wc -l) == 2 ]] ||
    fails "not said by both: too little memory"
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port += 1)) EMULATED_DEVICES=1 \
    timeout 90 "$program" run --backend cuda "$out/much.ir" --timeout 2 >"$out/0.txt" 2>&1
grep -q "rank 1" "$out/0.txt" || fails "a machine is charged the memory of ranks of another"

# A process that is stopped keeps its connections, and its last word may be that an op is at work.
if [[ -n ${CHECK_ALL-} ]]; then
    stopped=1 ranks 2 --strategy ulysses --profile ideal --weights replicated --steps 100000 --warmup 0 --stall 2 &&
        fails "a stopped process: rank 0 ends well"
    grep -qE "stalled: rank 0: op|has not heard of rank 1 for 60 s" "$out/0.txt" || fails "a stopped process is not noticed"
fi

# An op without an event has ended, unseen, before one that waits for a collective which hangs: it is not at work.
cat >"$out/unseen.ir" <<'END'
longhaul schedule 1
mesh g=2
arena hbm=2048
group g axes=g
stream compute compute
stream comm comm
buffer a0 hbm f32 [4] activation persistent at=0
buffer b0 hbm f32 [4] activation persistent at=512
buffer c0 hbm f32 [4] activation persistent at=1024
op 0 fill compute count=4 writes a0
op 1 all_reduce comm group=g bytes=16 waits 0 reads a0 writes a0
op 2 fill compute count=4 writes b0
op 3 add compute count=4 waits 1 reads a0 b0 writes c0
END
EMULATED_NCCL_STOPS=device processes 2 "$out/unseen.ir" --stall 2 --warmup 0 --steps 1 &&
    fails "a collective that hangs after an op without an event: the run ends well"
grep -q "stalled: rank 0: op [13] " "$out"/0.txt || grep -q "stalled: rank 1: op [13] " "$out"/1.txt ||
    fails "a collective that hangs after an op without an event is not noticed"

EMULATED_NCCL_FAILS=ncclCommRegister says "ncclCommRegister: error: group " \
    2 --strategy ulysses --profile ideal --nccl-buffers registered
EMULATED_NCCL_FAILS=ncclMemAlloc says "ncclMemAlloc: error: " \
    2 --strategy ulysses --profile ideal --nccl-buffers registered
processes 1 --gpus 2 --model longhaul-3m --seq 96 --strategy ulysses --nccl-buffers registered &&
    fails "ranks that share a GPU register memory with NCCL"

export EMULATED_NCCL_FAILS=ncclAllReduce
says "NCCL: unhandled system error of the emulated library: the words of the emulated library" \
    2 --strategy ulysses --profile ideal --weights replicated
export EMULATED_NCCL_FAILS=ncclCommInitRankConfig
says "ncclCommInitRankConfig: error: all ranks: " 2 --strategy ulysses --profile ideal
export EMULATED_NCCL_FAILS=ncclCommSplit
says "ncclCommSplit: error: group " 2 --strategy ulysses --profile ideal
exit $((wrong > 0))
