#!/usr/bin/env bash
# Runs nccl-tests under mpirun with few and with many cores. NCCL's own proxy (Socket) and the takeover alternate.
#
#   bench/gpu/cores.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# NCCL_TESTS must be set to the folder of the nccl-tests programs, built with MPI=1. These variables select the runs:
# - BINDS ("1 2 4 8 16 quota unbound"). A number is cores for each rank with --bind-to core. quota is a quota of 2 CPUs
#   for each rank's control group. unbound is --bind-to none.
# - PROGRAMS ("all_reduce sendrecv alltoall"), SIDES ("socket-proxy shm socket") and ROUNDS (1).
# - ENV ("NAME=VALUE ..."): more variables for the takeover.
#
# To NCCL, each rank is a separate host. On one GPU both ranks share it (NCCL_TESTS_DEVICE=0); start MPS first.
#
# Prints the median out-of-place times of the rounds in microseconds, their ratio to NCCL's own proxy, and #wrong. Exit
# status 1 if a run failed or an element was wrong.
set -euo pipefail
[[ $# -ge 1 && $1 != -* && -n ${NCCL_TESTS:-} ]] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
plugin=$(realpath "$1")/libnccl-net-millrace.so
output=${2:-$(mktemp -d)}
mkdir -p "$output"
binds=${BINDS:-1 2 4 8 16 quota unbound}
programs=${PROGRAMS:-all_reduce sendrecv alltoall}
sides=${SIDES:-socket-proxy shm socket}
rounds=${ROUNDS:-1}
status=0
cat > "$output/rank.sh" <<'RANK'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-0}
export NCCL_HOSTID=host$rank NCCL_SOCKET_IFNAME=lo
if [[ -n ${QUOTA_GROUP:-} ]]; then
  group=$QUOTA_GROUP/millrace-rank-$rank
  mkdir -p "$group"
  if [[ -e $group/cpu.max ]]; then echo "200000 100000" > "$group/cpu.max"; else echo 100000 > "$group/cpu.cfs_period_us"; echo 200000 > "$group/cpu.cfs_quota_us"; fi
  echo $$ > "$group/cgroup.procs"
fi
exec "$@"
RANK
chmod +x "$output/rank.sh"

quota_group() { # prints the directory for a control group with a quota
  if [[ -d /sys/fs/cgroup/cpu ]]; then echo /sys/fs/cgroup/cpu; return; fi
  echo +cpu > /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
  echo /sys/fs/cgroup
}

run() { # BIND SIDE PROGRAM ROUND: appends "BYTES MICROSECONDS WRONG" lines to a file
  local bind=$1 side=$2 program=$3 log=$output/$3.$1.$2.$4 mpi environment=()
  case $bind in
    unbound) mpi=(--bind-to none) ;;
    quota) mpi=(--bind-to none -x "QUOTA_GROUP=$(quota_group)") ;;
    default) mpi=() ;;
    *) mpi=(--map-by "slot:PE=$bind" --bind-to core) ;;
  esac
  case $side in
    socket-proxy) environment=(NCCL_NET_PLUGIN=none NCCL_NET=Socket) ;;
    *) environment=(NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET="$side" ${ENV:-}) ;;
  esac
  : > "$log"
  local part
  for part in "-b 8 -e 256K -f 8 -n ${SMALL_ITERATIONS:-200} -w ${SMALL_WARMUP:-50}" "-b 2M -e 128M -f 8 -n ${LARGE_ITERATIONS:-15} -w 4"; do
    # shellcheck disable=SC2086
    env "${environment[@]}" timeout "${TIMEOUT:-60}" mpirun --allow-run-as-root --oversubscribe "${mpi[@]}" -np 2 "$output/rank.sh" "$NCCL_TESTS/${program}_perf" $part -g 1 \
      >> "$log.txt" 2>&1 || { echo "failed: $bind $side $program (see $log.txt)"; status=1; }
  done
  awk '$1 ~ /^[0-9]+$/ && NF > 10 {print $1, $6, $9}' "$log.txt" > "$log"
}

for bind in $binds; do
  for round in $(seq "$rounds"); do
    for program in $programs; do
      for side in $sides; do run "$bind" "$side" "$program" "$round"; done
    done
  done
done

python3 - "$output" "$binds" "$programs" "$sides" "$rounds" <<'TABLE' || status=1
import statistics, sys
output, binds, programs, sides, rounds = sys.argv[1:]
binds, programs, sides = binds.split(), programs.split(), sides.split()
def read(program, bind, side):
    times, wrong = {}, 0
    for round in range(1, int(rounds) + 1):
        for line in open(f"{output}/{program}.{bind}.{side}.{round}"):
            size, micros, errors = line.split()
            times.setdefault(int(size), []).append(float(micros))
            wrong += 0 if errors == "0" or errors == "N/A" else 1
    return {size: statistics.median(all) for size, all in times.items()}, wrong
total = 0
for program in programs:
    sizes = [8, 512, 32768, 262144, 2097152, 16777216, 134217728]
    print(f"{program:<12}{'cores':>8}{'':>14}" + "".join(f"{size:>16}" for size in sizes))
    for bind in binds:
        reference = None
        for side in sides:
            times, wrong = read(program, bind, side)
            total += wrong
            reference = times if side == "socket-proxy" else reference
            cells = ""
            for size in sizes:
                at = min(times, key=lambda s: abs(s - size), default=None) # alltoall rounds sizes down
                near = at is not None and size / 2 < at <= size
                text = f"{times[at]:.1f}" if near else "-"
                if near and reference and side != "socket-proxy" and at in reference:
                    text += f" ({times[at] / reference[at]:.2f})"
                cells += f"{text:>16}"
            print(f"{'':<12}{bind:>8}{side:>14}{cells}")
print(f"#wrong {total}")
sys.exit(total > 0)
TABLE
echo "logs: $output"
exit "$status"
