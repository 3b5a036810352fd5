#!/usr/bin/env bash
# Runs DeepEP's own tests (tests/elastic of deepseek-ai/DeepEP) over NCCL's GIN, which this plugin serves. The GPUs are
# on one host, and NCCL takes them for several hosts (NCCL_HOSTID). Each rank is a process. No InfiniBand is required.
#
#   bench/gpu/deepep.sh DIR DEEPEP [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. DEEPEP is a checkout of DeepEP; the script does not change it.
# OUTPUT is the directory for logs (default: a temporary directory).
#
# Builds DeepEP's elastic part. Prints for each test whether it passed, DeepEP's own figures, and the plugin's report of
# windows and descriptors. If a test does not end, the script prints the state of its threads and kernels. Exit status 1
# if a test failed.
#
# TESTS lists the tests in order (default: barrier ep hybrid agrs pp engram):
# - ep: the first case of test_ep.py in a small shape. The first run includes the compilation of kernels. The second run
#   excludes it and prints figures.
# - hybrid: the same kernels with two levels.
# - ep_again, hybrid_again: only the second run of ep or hybrid.
# - ep_all, hybrid_all: all 144 cases. With the suffix _no_sync the host does not know the number of received tokens.
# - ep_full: DeepEP's default shape, with EP_ARGUMENTS. By default DeepEP takes all multiprocessors; "--num-sms 24"
#   limits it.
# - sides: the default shape with each of SIDES in turn, TURNS (3) times. Between the turns it runs an all-to-all of the
#   same bytes by NCCL's own proxy and by the takeover. Prints a table at the end.
# - lost: a rank is killed between dispatches. Prints the messages of the other ranks and the time until they end.
#
# SIDES lists NAME:SETTING,SETTING ... (default: the following four):
#   direct: engines:MILLRACE_GIN_COPY_KERNEL=0 staged:MILLRACE_GIN_DIRECT=0
#   tcp:MILLRACE_NET=socket,MILLRACE_GIN_DIRECT=0,MILLRACE_GIN_SHARED=0
#
# These variables may be set as well:
# - SETTINGS: environment for all ranks, as NAME=VALUE NAME=VALUE. MILLRACE_NET (shm) selects the network.
# - RANKS (2) and RANKS_PER_HOST (1). agrs has all ranks on one host, because DeepEP runs it only over NVLink.
# - LIMIT (90 s, for a test with compiled kernels) and COMPILE_LIMIT (300 s, for a test with kernels to compile).
# - DEADLINE: seconds for all tests together. Tests that do not fit are not run, and count as failed.
# - DEBUGGER=1: adds the output of cuda-gdb for a test that does not end. cuda-gdb stops the test for this.
# - WORK (/tmp/millrace-deepep): keeps the build and the kernels that DeepEP compiled. A second run compiles nothing.
#
# Requires nvcc, PyTorch, and NCCL 2.30.4 or newer with its headers, which replaces PyTorch's NCCL. NCCL_HOME and
# CUDA_HOME are their directories. The defaults are the nvidia.nccl package of python3 and /usr/local/cuda.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 2 && $1 != -* ]] || { sed -n '2,39s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1") || exit 2
source=$(realpath "$2")
[ -e "$source/csrc/elastic/buffer.hpp" ] || { echo "$source is no checkout of DeepEP 2 (csrc/elastic/buffer.hpp is missing)" >&2; exit 2; }
output=$(realpath -m "${3:-$(mktemp -d)}")
work=${WORK:-/tmp/millrace-deepep}
mkdir -p "$output" "$work/bin" "$work/jit" "$work/stacks"
export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
NCCL_HOME=$(realpath "${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}")
gpus=${GPUS:-$(nvidia-smi -L | wc -l)}
ranks=${RANKS:-2}
per_host=${RANKS_PER_HOST:-1}
deadline=${DEADLINE:-1000000}
failures=0

# DeepEP asks the tools of InfiniBand for the speed of the card. It divides by the speed and so chooses the number of
# multiprocessors.
cat >"$work/bin/ibstat" <<'X'
#!/bin/sh
printf "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n"
X
chmod +x "$work/bin/ibstat"
# On a signal, every process of the tests prints the stacks of its Python threads. faulthandler.enable would suppress
# the JVM's crash report.
cat >"$work/bin/sitecustomize.py" <<'X'
import faulthandler, os, signal
if 'EP_STACKS' in os.environ:
    _stacks = open(f"{os.environ['EP_STACKS']}.{os.getpid()}", 'w')
    faulthandler.register(signal.SIGUSR1, file=_stacks, all_threads=True)
X

build() {
  local tree=$work/deepep python includes flags link
  rm -rf "$tree"
  mkdir -p "$tree/build"
  cp -r "$source/deep_ep" "$source/csrc" "$source/tests" "$tree/"
  # Reads a signal through NCCL's interface instead of the memory of one backend.
  sed -i -e '/const auto gdaki = /d' -e '/const auto signal_ptr = reinterpret_cast<uint64_t\*>(__ldg/d' \
    -e 's/ptx::ld_acquire_sys<uint64_t>(signal_ptr)/gin.readSignal(signal_idx)/' "$tree/deep_ep/include/deep_ep/common/comm.cuh"
  sed -i -e '/const auto gdaki = /d' -e '/const auto signal_ptr = reinterpret_cast<int64_t\*>($/,+1d' \
    -e 's/ptx::ld_acquire_sys<int64_t>(signal_ptr)/static_cast<int64_t>(gin.gin.readSignal(signal_idx))/' "$tree/deep_ep/include/deep_ep/impls/pp_send_recv.cuh"
  if grep -q 'gdaki' "$tree"/deep_ep/include/deep_ep/*/*.cuh; then echo "this DeepEP reads signals elsewhere too: see grep gdaki in $tree/deep_ep/include"; fi
  # Lets processes of one host act as several hosts, each with its own GPU.
  sed -i -e "s/torch.device(f'cuda:{local_rank}')/torch.device(f'cuda:{local_rank + int(os.environ.get(\"EP_FIRST_DEVICE\", 0))}')/" \
    -e 's/torch.cuda.set_device(local_rank)/torch.cuda.set_device(local_rank + int(os.environ.get("EP_FIRST_DEVICE", 0)))/' "$tree/deep_ep/utils/envs.py"
  # Builds only the elastic part, because the older part needs NVSHMEM.
  sed -i -e '/legacy\/buffer.hpp/d' -e '/legacy::register_apis/d' \
    -e 's/^PYBIND11_MODULE.*/&\n    pybind11::class_<deep_ep::EventHandle>(m, "EventHandle").def(pybind11::init<>())\n        .def("current_stream_wait", \&deep_ep::EventHandle::current_stream_wait);/' \
    "$tree/csrc/python_api.cpp"
  sed -i -e '/buffers.legacy import/d' -e 's/import Config, topk_idx_t/import topk_idx_t/' "$tree/deep_ep/__init__.py"
  local fmt=${FMT_INCLUDE:-$source/third-party/fmt/include}
  [ -e "$fmt/fmt/format.h" ] || { echo "there is no fmt in $fmt: fetch DeepEP's submodule third-party/fmt, or set FMT_INCLUDE" >&2; return 1; }
  read -r python includes link <<<"$(python3 - <<'X'
import sysconfig, torch.utils.cpp_extension as e, torch
print(sysconfig.get_paths()['include'], ':'.join(e.include_paths()), e.library_paths()[0])
X
)"
  flags="-O2 -std=c++20 -DTORCH_EXTENSION_NAME=_C -DTORCH_API_INCLUDE_EXTENSION_H -D_GLIBCXX_USE_CXX11_ABI=1 -w"
  flags+=" -I$tree/deep_ep/include -I$fmt -I$NCCL_HOME/include -I$python -I${includes//:/ -I} -I$CUDA_HOME/include -I$CUDA_HOME/include/cccl"
  local pids=() pid status=0
  g++ $flags -fPIC -c "$tree/csrc/python_api.cpp" -o "$tree/build/python_api.o" >"$output/build.1.log" 2>&1 & pids+=($!)
  for unit in nccl cuda_driver; do
    "$CUDA_HOME/bin/nvcc" $flags -Xcompiler -fPIC --expt-relaxed-constexpr --extended-lambda -gencode arch=compute_90,code=sm_90 \
      -c "$tree/csrc/kernels/backend/$unit.cu" -o "$tree/build/$unit.o" >"$output/build.$unit.log" 2>&1 & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  if [ $status = 0 ]; then
    g++ -shared -o "$tree/deep_ep/_C.so" "$tree"/build/*.o -L"$link" -ltorch -ltorch_cpu -ltorch_cuda -ltorch_python -lc10 -lc10_cuda \
      -L"$CUDA_HOME/lib64" -lcudart -L"$CUDA_HOME/lib64/stubs" -lcuda -L"$NCCL_HOME/lib" -l:libnccl.so.2 -Wl,-rpath,"$link" \
      -Wl,-rpath,"$NCCL_HOME/lib" >"$output/build.link.log" 2>&1 || status=1
  fi
  [ $status = 0 ] || { echo "DeepEP could not be built:"; grep -hE 'error|Error|undefined|cannot' "$output"/build.*.log | head -20; return 1; }
}

descendants() { # PID: prints the process and all its descendants
  local child
  echo "$1"
  for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do descendants "$child"; done
}

stacks() { # LABEL PID...: prints the state of the threads of processes that should have ended
  local label=$1 root pid task busy=()
  shift
  echo "-- $label still runs; what its threads do is in $output/$label.stacks"
  for root; do
    for pid in $(descendants "$root"); do
      [ "$(ls "/proc/$pid/task" 2>/dev/null | wc -l)" -gt 20 ] && busy+=("$pid")
    done
  done
  for pid in "${busy[@]}"; do
    echo "==== process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c1-200)"
    for task in /proc/"$pid"/task/*; do # name, state, processor time in 10 ms, system call, and kernel stack
      echo "$(cat "$task/comm"): $(sed 's/.*) //' "$task/stat" | awk '{print $1, $12 + $13}'), $(cut -c1-40 "$task/syscall"), $(head -4 "$task/stack" | tr '\n' ' ')"
    done
    # only if the process catches the signal; a Python process that is exiting no longer does
    (( 0x$(awk '/^SigCgt/ {print $2}' "/proc/$pid/status") >> 9 & 1 )) && kill -USR1 "$pid"
  done >"$output/$label.stacks" 2>&1
  sleep 1
  for pid in "${busy[@]}"; do cat "$work/stacks/$label.$pid"; done >>"$output/$label.stacks" 2>&1
  [ -n "${DEBUGGER:-}" ] && for pid in "${busy[@]}"; do # cuda-gdb stops the process for a while
    echo "==== process $pid: native threads"
    timeout -s KILL 20 "$CUDA_HOME/bin/cuda-gdb" -p "$pid" -batch -ex 'info cuda kernels' -ex 'thread apply all bt 14' 2>&1 |
      grep -vE '^\[New|^warning|^$' | head -900
  done >>"$output/$label.stacks" 2>&1
  grep -hE 'File .*(test_|elastic.py|refs.py)' "$output/$label.stacks" | sort | uniq -c | sort -rn | head -6
}

counters() { # LABEL: prints the plugin's report of the run
  grep -hoE 'GIN: .*' "$output/$1".?.nccl 2>/dev/null | sed -E 's/0x[0-9a-f]+/0x/g; s/context [0-9]+: descriptors/context N: descriptors/' \
    | grep -v 'context N: descriptors served by Java: 0 ' | sort | uniq -c | sort -rn | head -14 | cut -c1-400
  grep -hE 'WARN' "$output/$1".?.nccl 2>/dev/null | sort | uniq -c | sort -rn | head -6 | cut -c1-400
  awk '/descriptors served by Java/ { for (i = 1; i <= NF; i++) if ($i == "Java:") n += $(i + 1) } END { print "   descriptors served by Java in all contexts of all ranks:", n + 0 }' \
    "$output/$1".?.nccl 2>/dev/null
  local log
  for log in "$output/$1".?.nccl; do grep -hoE "rank [0-9]+, copies by the GPU's engines: .*" "$log" 2>/dev/null | tail -1; done
}

# LABEL SECONDS TEST ARGUMENTS...: starts one of DeepEP's tests on all ranks, and sets pids
start() {
  local label=$1 limit=$2 test=$3 rank port=$((20000 + RANDOM % 20000))
  shift 3
  pids=()
  for ((rank = 0; rank < ranks; rank++)); do
    rm -f "$output/$label.$rank.nccl"
    env PATH="$work/bin:$PATH" PYTHONPATH="$work/deepep:$work/bin:${PYTHONPATH:-}" PYTHONUNBUFFERED=1 EP_STACKS="$work/stacks/$label" \
      RANK=$rank WORLD_SIZE="$ranks" MASTER_ADDR=127.0.0.1 MASTER_PORT=$port EP_FIRST_DEVICE=$((rank % gpus)) \
      EP_SUPPRESS_NCCL_CHECK=1 EP_NCCL_ROOT_DIR="$NCCL_HOME" EP_JIT_CACHE_DIR="$work/jit" LD_PRELOAD="$NCCL_HOME/lib/libnccl.so.2" \
      NCCL_HOSTID="host$((rank / per_host))" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" GLOO_SOCKET_IFNAME=lo NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace \
      MILLRACE_NET="${MILLRACE_NET:-shm}" NCCL_DEBUG="${NCCL_DEBUG:-INFO}" NCCL_DEBUG_SUBSYS="${NCCL_DEBUG_SUBSYS:-INIT,NET,REG}" \
      NCCL_DEBUG_FILE="$output/$label.$rank.nccl" TORCH_NCCL_ASYNC_ERROR_HANDLING=1 ${SETTINGS:-} \
      timeout -k 5 "$limit" python3 "$work/deepep/tests/elastic/$test" --num-processes 1 "$@" >"$output/$label.$rank.log" 2>&1 &
    pids+=($!)
  done
}

# LABEL SECONDS TEST ARGUMENTS...: runs one of DeepEP's tests
run() {
  local label=$1 limit=$2 status=0 pids pid began=$SECONDS watch
  if [ $((SECONDS + limit)) -gt "$deadline" ]; then limit=$((deadline - SECONDS)); fi
  if [ "$limit" -lt 25 ]; then
    echo "== $label not run: no time is left"
    failures=$((failures + 1))
    return
  fi
  start "$label" "$limit" "${@:3}"
  # at the very end, because the walk of Python through the frames of running threads may end the process
  (sleep $((limit - 8)); stacks "$label" "${pids[@]}") &
  watch=$!
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  { kill $(descendants $watch); wait $watch; } 2>/dev/null
  if [ $status = 0 ]; then
    echo "== $label passed ($((SECONDS - began)) s)"
  else
    echo "== $label FAILED ($((SECONDS - began)) s, status $status$([ $status = 124 ] && echo ', it did not end'))"
    failures=$((failures + 1))
    tail -qn 12 "$output/$label".?.log | cut -c1-300
  fi
  grep -hE '\* EP|barrier time|GB/s' "$output/$label".0.log | cut -c1-230 | head "${LINES_OF_FIGURES:--16}"
  [[ $label != *_all* ]] || echo "   cases begun: $(grep -c 'Testing with' "$output/$label.0.log")"
  counters "$label"
  return $status
}

# LABEL SECONDS TEST ARGUMENTS...: kills the last rank in the middle of its rounds. Prints the times until rank 0
# reports the loss and until it ends.
lose() {
  local label=$1 limit=$2 pids began=$SECONDS killed told=
  start "$@"
  until grep -q 'seed=5' "$output/$label.0.log"; do
    kill -0 "${pids[0]}" 2>/dev/null || break
    sleep 0.05
  done
  killed=$(date +%s%3N)
  kill -KILL $(descendants "${pids[-1]}")
  while kill -0 "${pids[0]}" 2>/dev/null; do
    if [ -z "$told" ] && grep -q '^millrace: .*lost' "$output/$label.0.log"; then told=$(($(date +%s%3N) - killed)); fi
    sleep 0.05
  done
  echo "== $label: rank 0 said so ${told:-never, not after any} ms after the kill and ended after $(($(date +%s%3N) - killed)) ms ($((SECONDS - began)) s)"
  wait "${pids[@]}" 2>/dev/null
  [ -n "$told" ] || failures=$((failures + 1))
  grep -h '^millrace: ' "$output/$label.0.log" | cut -c1-500
}

# NAME ENVIRONMENT...: runs an all-to-all between two ranks. Each rank receives 60 MB, the same as in a dispatch of the
# default shape.
all_to_all() {
  local name=$1 rank
  shift
  rm -f "$work/id"
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" LD_LIBRARY_PATH="$NCCL_HOME/lib" SIZES=$((120 << 20)) "$@" \
      timeout -k 5 60 "$work/nccl_perf" "$rank" 2 "$work/id" alltoall $((120 << 20)) $((120 << 20)) 20 "$name" >"$output/$name.$rank.log" 2>&1 &
  done
  wait
  awk -v name="${name%.*}" -v size=$((120 << 20)) '$3 == size { print name, "all-to-all", $4 / 1000, size / 2 / $4 / 1000; exit }' "$output/$name.0.log" >>"$output/sides"
}

# DeepEP's marks of its figures: * dispatch, - expanded dispatch, # cached dispatch, @ combine, + reduced combine
sides() {
  local turn side name failed=0
  build_nccl_perf || return 1
  : >"$output/sides"
  for turn in $(seq "${TURNS:-3}"); do
    for side in ${SIDES:-direct: engines:MILLRACE_GIN_COPY_KERNEL=0 staged:MILLRACE_GIN_DIRECT=0 tcp:MILLRACE_NET=socket,MILLRACE_GIN_DIRECT=0,MILLRACE_GIN_SHARED=0}; do
      name=${side%%:*}
      SETTINGS="${SETTINGS:-} $(tr ',' ' ' <<<"${side#*:}")" LINES_OF_FIGURES=-0 run "$name.$turn" "$uncompiled" test_ep.py --allow-hybrid-mode 0 \
        --test-first-only ${EP_ARGUMENTS:---num-sms 24} || failed=1
      awk -v name="$name" '/ us, / && match($0, /[0-9.]+ us, [0-9]+ bytes/) {
          split(substr($0, RSTART, RLENGTH), figure, " "); if (figure[3] == 0) next
          mark = $1; sub(/\*/, "dispatch", mark); sub(/^-/, "expanded dispatch", mark); sub(/#/, "cached dispatch", mark); sub(/@/, "combine", mark)
          sub(/^\+/, "reduced combine", mark); gsub(/ /, "_", mark); print name, mark, figure[1] / 1000, figure[3] / figure[1] / 1000
        }' "$output/$name.$turn.0.log" >>"$output/sides"
    done
    all_to_all "nccl.$turn" NCCL_NET=Socket
    all_to_all "takeover_tcp.$turn" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET=socket
    all_to_all "takeover_shm.$turn" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET=shm
  done
  echo "== side, what, median ms, GB/s, runs"
  sort -k1,2 -k3,3n "$output/sides" | awk '
    { key = $1 " " $2 } key != last { show(); last = key; n = 0 } { ms[++n] = $3; rate[n] = $4 } END { show() }
    function show() { if (n) printf "%-14s %-18s %8.2f %7.1f %3d\n", substr(last, 1, index(last, " ") - 1), substr(last, index(last, " ") + 1), ms[int((n + 1) / 2)], rate[int((n + 1) / 2)], n }'
  return $failed
}

small=(--num-tokens 512 --hidden 2048 --num-experts 16 --num-topk 4 --num-sms 8 --num-qps 4 --num-allocated-qps 8)
compiled=${LIMIT:-90}
uncompiled=${COMPILE_LIMIT:-300}
all=${ALL_LIMIT:-560}

[ -e "$work/deepep/deep_ep/_C.so" ] && [ -z "${REBUILD:-}" ] || { began=$SECONDS; build || exit 1; echo "== DeepEP built ($((SECONDS - began)) s)"; }
for test in ${TESTS:-barrier ep hybrid agrs pp engram}; do
  case $test in
    barrier) run barrier "$uncompiled" test_barrier.py --allow-hybrid-mode 0 ;;
    ep)
      run ep_first "$uncompiled" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --test-first-only --skip-perf-test &&
        run ep_again "$compiled" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --test-first-only
      ;;
    ep_again) run ep_again "$compiled" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --test-first-only ;;
    hybrid_again) run hybrid_again "$compiled" test_ep.py "${small[@]}" --allow-hybrid-mode 1 --test-first-only ;;
    hybrid)
      run hybrid_first "$uncompiled" test_ep.py "${small[@]}" --allow-hybrid-mode 1 --test-first-only --skip-perf-test &&
        run hybrid_again "$compiled" test_ep.py "${small[@]}" --allow-hybrid-mode 1 --test-first-only
      ;;
    agrs) per_host=$ranks run agrs "$uncompiled" test_agrs.py ;;
    pp) run pp "$uncompiled" test_pp.py --num-tokens 1024 --hidden 2048 --num-stress-iterations 1 --num-sends 32 ;;
    engram) run engram "$uncompiled" test_engram.py --num-entries 65536 --num-qps 16 ;;
    ep_all) run ep_all "$all" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --skip-perf-test ;;
    ep_all_no_sync) run ep_all_no_sync "$all" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --skip-perf-test --do-cpu-sync 0 ;;
    hybrid_all) run hybrid_all "$all" test_ep.py "${small[@]}" --allow-hybrid-mode 1 --skip-perf-test ;;
    hybrid_all_no_sync) run hybrid_all_no_sync "$all" test_ep.py "${small[@]}" --allow-hybrid-mode 1 --skip-perf-test --do-cpu-sync 0 ;;
    lost)
      lose lost "$uncompiled" test_ep.py "${small[@]}" --allow-hybrid-mode 0 --test-first-only --skip-perf-test \
        --do-pressure-test --reuse-elastic-buffer
      ;;
    sides) sides ;;
    ep_full) run ep_full "$uncompiled" test_ep.py --allow-hybrid-mode 0 --test-first-only ${EP_ARGUMENTS:-} ;;
    *) echo "there is no test $test" >&2; failures=$((failures + 1)) ;;
  esac
done
echo "logs: $output; $failures failed"
[ $failures = 0 ]
