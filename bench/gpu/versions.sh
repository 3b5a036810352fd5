#!/usr/bin/env bash
# Tests several NCCLs with this plugin, between two GPUs of one host. For each NCCL it runs nccl-tests, a client of GIN,
# and profiler counts. After that it runs two hosts with two GPUs each.
#
#   bench/gpu/versions.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# NCCL_TESTS must be set to the folder of the nccl-tests programs, built with MPI=1. These variables select the runs:
# - NCCL_LIBS ("NAME=HOME ..."): the NCCLs. A home has lib/libnccl.so.2 and include. The default is the nvidia.nccl
#   package of python3. A home without include runs no GIN.
# - PROGRAMS ("all_reduce all_gather alltoall sendrecv"), GIN (1) and HOSTS (1, two hosts of two GPUs).
# - ENV ("NAME=VALUE ..."): more variables for all runs.
#
# Times are out-of-place microseconds of one run, with the NCCLs in turn. One column is #wrong. "layout" is the layout
# that the plugin reports.
#
# The run of two hosts has four ranks, with one NCCL_HOSTID for each pair. Each rank has its own GPU if the host has
# four, and otherwise two ranks share a GPU. The NCCLs run at the same time under MPS, which the script starts and
# stops. P2P is used within a host and NET between hosts. One run has the defaults, and one has PXN, which leaves the
# data to NCCL's proxy. Their times would mean nothing, so the script prints only #wrong.
#
# Exit status 1 if an element was wrong or a run failed. Requires mpirun and nvcc.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* && -n ${NCCL_TESTS:-} ]] || { sed -n '2,24s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
libs=${NCCL_LIBS:-installed=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
programs=${PROGRAMS:-all_reduce all_gather alltoall sendrecv}
export GPUS=${GPUS:-$(nvidia-smi -L | wc -l)}
names=()
declare -A home
for each in $libs; do
  names+=("${each%%=*}")
  home[${each%%=*}]=$(realpath "${each#*=}")
done
mps=
stop() {
  [ -z "$mps" ] || echo quit | nvidia-cuda-mps-control > /dev/null 2>&1 || true
  rm -rf "$work"
}
trap stop EXIT

cat > "$work/rank.sh" <<'RANK'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-0}
export NCCL_HOSTID=host$((rank / RANKS_PER_HOST)) NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_TESTS_DEVICE=$((rank % GPUS))
exec "$@"
RANK
chmod +x "$work/rank.sh"

# LOG NAME RANKS RANKS_PER_HOST ENVIRONMENT... -- PROGRAM ARGUMENTS...: runs nccl-tests over one of the NCCLs
tests() {
  local log=$output/$1 name=$2 ranks=$3 perHost=$4 settings=()
  shift 4
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  local program=$1
  shift
  # shellcheck disable=SC2086
  env LD_LIBRARY_PATH="${home[$name]}/lib:${LD_LIBRARY_PATH:-}" RANKS_PER_HOST="$perHost" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace NCCL_DEBUG_FILE="$log.nccl.%p" \
    ${ENV:-} ${settings[@]+"${settings[@]}"} timeout -k 5 "${TIMEOUT:-60}" mpirun --allow-run-as-root --oversubscribe --bind-to none -np "$ranks" \
    "$work/rank.sh" "$NCCL_TESTS/${program}_perf" -g 1 "$@" > "$log" 2>&1 || echo FAILED >> "$log"
}

gin() { # NAME: runs a client of GIN, built with the headers of this NCCL
  local name=$1 rank
  [ -d "${home[$name]}/include" ] || return 0
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace LD_LIBRARY_PATH="${home[$name]}/lib" \
      timeout -k 5 90 "$work/gin.$name/nccl_gin" "$rank" 2 "$work/gin.$name/id" 1048576 100 > "$output/gin.$name.$rank" 2>&1 &
  done
  wait
}

if [ "${GIN:-1}" = 1 ]; then
  for name in "${names[@]}"; do
    [ -d "${home[$name]}/include" ] || continue
    (mkdir "$work/gin.$name" && work=$work/gin.$name NCCL_HOME=${home[$name]} build_device nccl_gin) > "$output/gin.$name.build" 2>&1 &
  done
  wait
fi

for program in $programs; do
  for name in "${names[@]}"; do
    tests "$program.$name" "$name" 2 1 -- "$program" -b 8 -e 128M -f 8 -n 20 -w 5
  done
done

# The runs that count and check, and do not time, run for all NCCLs at once.
for name in "${names[@]}"; do
  tests "profile.$name" "$name" 2 1 NCCL_DEBUG=INFO MILLRACE_PROFILER=kernels -- all_reduce -b 1M -e 1M -n 50 -w 5 &
  [ "${GIN:-1}" != 1 ] || gin "$name" &
done
wait

if [ "${HOSTS:-1}" = 1 ]; then
  export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps-log
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
  nvidia-cuda-mps-control -d && mps=1
  for name in "${names[@]}"; do
    for program in $programs; do
      tests "hosts.$program.$name" "$name" 4 2 -- "$program" -b 8 -e 16M -f 16 -n 3 -w 1
      tests "pxn.$program.$name" "$name" 4 2 NCCL_PXN_DISABLE=0 NCCL_P2P_PXN_LEVEL=2 -- "$program" -b 8 -e 16M -f 16 -n 3 -w 1
    done &
  done
  wait
fi

python3 - "$output" "$programs" "${GIN:-1}" "${HOSTS:-1}" "${names[@]}" <<'TABLE'
import glob, re, sys
output, programs, gin, hosts, *names = sys.argv[1:]
programs = programs.split()
bad = 0
def read(log):
    """Returns the out-of-place microseconds by size, and the number of wrong elements, or "failed"."""
    global bad
    try:
        text = open(f"{output}/{log}").read()
    except FileNotFoundError:
        text = "FAILED"
    rows = [line.split() for line in text.splitlines() if re.match(r"\s+\d+\s+\d+\s+\w+\s", line)]
    if "FAILED" in text or not rows:
        bad += 1
        return {}, "failed"
    wrong = sum(int(row[at]) for row in rows for at in (8, 12) if row[at] != "N/A")
    bad += wrong > 0
    return {int(row[0]): float(row[5]) for row in rows}, wrong
def found(pattern, expression):
    said = {m for log in glob.glob(f"{output}/{pattern}") for m in re.findall(expression, open(log, errors="replace").read())}
    return " | ".join(sorted(said)) or "-"
sizes = [8, 262144, 134217728]
print(f"{'NCCL':<14}" + "".join(f"{program:>34}" for program in programs))
print(f"{'us, bytes':<14}" + "".join(f"{'8':>9}{'256 KiB':>9}{'128 MiB':>9}{'#wrong':>7}" for _ in programs))
for name in names:
    cells = ""
    for program in programs:
        times, wrong = read(f"{program}.{name}")
        for size in sizes:
            at = min(times, key=lambda s: abs(s - size), default=None)  # all-to-all and all-gather round sizes down
            cells += f"{times[at]:>9.1f}" if at is not None and (size / 2 < at <= size or at == 0 == size // 16) else f"{'-':>9}"
        cells += f"{wrong:>7}"
    print(f"{name:<14}{cells}")
print()
for name in names:
    print(f"{name}: {found(f'profile.{name}.nccl.*', r'network table v[0-9]+ of ([^;]*?), [a-z]+ over')}")
    _, wrong = read(f"profile.{name}")
    print(f"  profiler, #wrong {wrong}: {found(f'profile.{name}.nccl.*', r'profiler: (.*)')}")
    warned = found(f"profile.{name}.nccl.*", r"NET/Millrace: (the takeover is not possible .*)")
    if warned != "-":
        print(f"  {warned}")
    if gin == "1":
        said = [re.search(r"^rank \d+ wrong (\d+)", open(log, errors="replace").read(), re.M) for log in sorted(glob.glob(f"{output}/gin.{name}.[01]"))]
        if said:
            bad += any(not one or one.group(1) != "0" for one in said)
            print("  GIN, #wrong " + ", ".join(one.group(1) if one else "failed" for one in said))
    if hosts == "1":
        for way, text in (("hosts", "two hosts of two GPUs, #wrong"), ("pxn", "the same with PXN, #wrong")):
            print(f"  {text} " + ", ".join(f"{program} {read(f'{way}.{program}.{name}')[1]}" for program in programs))
print(f"{'wrong or failed: ' + str(bad) if bad else 'all right'}")
print(f"logs: {output}")
sys.exit(bad > 0)
TABLE
