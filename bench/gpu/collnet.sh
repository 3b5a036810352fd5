#!/usr/bin/env bash
# Measures CollNet under libnccl with nccl-tests under mpirun. To NCCL, each rank is a host. Runs by the ring (the
# takeover) and runs through Millrace's collective network alternate.
#
#   bench/gpu/collnet.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# NCCL_TESTS must be set to the folder of the nccl-tests programs, built with MPI=1. These variables select the runs:
# - RANKS (2), PROGRAMS ("all_reduce all_gather reduce_scatter"), NETS ("shm socket") and ROUNDS (3).
# - BINDS ("unbound"): also numbers of cores for each rank.
# - SIDES ("ring ring-host direct chain"): ring is the takeover with its defaults, and ring-host has its slots in host
#   memory. direct and chain set NCCL_COLLNET_ENABLE=1, with NCCL_ALGO=collnetdirect and NCCL_ALGO=collnetchain.
# - ENV ("NAME=VALUE ..."): more variables for all runs.
#
# On a machine without NVSwitch NCCL has no collnetdirect. NCCL has collnetchain only for all-reduce. With fewer GPUs
# than ranks, start MPS first (for one GPU set NCCL_TESTS_DEVICE=0).
#
# First the script checks every type and operator of all-reduce, element by element (CHECK="" omits this), and prints
# NCCL's choice for it. Then it prints the median out-of-place times of the rounds in microseconds, their ratio to the
# ring, and #wrong. Exit status 1 if a run failed, an element was wrong, or a run did not use CollNet although it was
# required.
set -euo pipefail
[[ $# -ge 1 && $1 != -* && -n ${NCCL_TESTS:-} ]] || { sed -n '2,23s/^# \{0,1\}//p' "$0"; exit 2; }
plugin=$(realpath "$1")/libnccl-net-millrace.so
output=${2:-$(mktemp -d)}
mkdir -p "$output"
ranks=${RANKS:-2}
programs=${PROGRAMS:-all_reduce all_gather reduce_scatter}
sides=${SIDES:-ring ring-host direct chain}
nets=${NETS:-shm socket}
binds=${BINDS:-unbound}
rounds=${ROUNDS:-3}
check=${CHECK-direct chain}
status=0
cat > "$output/rank.sh" <<'RANK'
#!/usr/bin/env bash
export NCCL_HOSTID=host${OMPI_COMM_WORLD_RANK:-0} NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}
exec "$@"
RANK
chmod +x "$output/rank.sh"

side_settings() { # SIDE
  case $1 in
    ring) echo NCCL_ALGO=Ring ;;
    ring-host) echo NCCL_ALGO=Ring MILLRACE_DEVICE_SLOTS=0 ;;
    direct) echo NCCL_COLLNET_ENABLE=1 NCCL_ALGO=CollnetDirect ;;
    chain) echo NCCL_COLLNET_ENABLE=1 NCCL_ALGO=CollnetChain ;;
    *) echo "no such side: $1" >&2; exit 2 ;;
  esac
}

launch() { # LOG BIND NET SIDE PROGRAM ARGUMENTS...
  local log=$1 bind=$2 net=$3 side=$4 program=$5 mpi=(--bind-to none)
  shift 5
  [[ $bind == unbound ]] || mpi=(--map-by "slot:PE=$bind" --bind-to core)
  # shellcheck disable=SC2046,SC2086
  env NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET="$net" $(side_settings "$side") ${ENV:-} timeout "${TIMEOUT:-120}" \
    mpirun --allow-run-as-root --oversubscribe "${mpi[@]}" -np "$ranks" "$output/rank.sh" "$NCCL_TESTS/${program}_perf" -g 1 "$@" >> "$log" 2>&1 \
    || { echo "failed: $bind $net $side $program (see $log)"; status=1; }
}

# NCCL logs the selected algorithm on request. Logging takes time, so this is a separate run.
for side in $check; do
  net=${nets%% *}
  log=$output/check.$side.log
  : > "$log"
  # Logs are separate files, because NCCL's messages during an operation would split the operation's line.
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING NCCL_DEBUG_FILE="$output/check.$side.nccl.%p" launch "$log" unbound "$net" "$side" all_reduce -b 8 -e 1M -f 32 -n 1 -w 0 -d all -o all
  awk -v side="$side" '/via COLLNET\/Millrace/ {connected++} /Algo COLLNET/ {through++} /-> Algo/ {all++}
    $1 ~ /^[0-9]+$/ && NF > 10 {lines++; wrong += ($9 != "0" && $9 != "N/A") + ($13 != "0" && $13 != "N/A")}
    END {printf "check %s: %d connections via COLLNET/Millrace; %d of %d operations by CollNet; %d lines of every type and operator, %d wrong\n",
           side, connected, through, all, lines, wrong; exit wrong || !lines || !connected}' "$log" "$output/check.$side".nccl.* || status=1
done

for bind in $binds; do
  for round in $(seq "$rounds"); do
    for net in $nets; do
      for program in $programs; do
        for side in $sides; do
          [[ $side == chain && $program != all_reduce ]] && continue
          log=$output/$program.$bind.$net.$side.$round
          : > "$log.txt"
          launch "$log.txt" "$bind" "$net" "$side" "$program" -b 8 -e 256K -f 8 -n "${SMALL_ITERATIONS:-200}" -w "${SMALL_WARMUP:-100}"
          launch "$log.txt" "$bind" "$net" "$side" "$program" -b 2M -e 128M -f 8 -n "${LARGE_ITERATIONS:-20}" -w 8
          awk '$1 ~ /^[0-9]+$/ && NF > 10 {print $1, $6, $9}' "$log.txt" > "$log"
        done
      done
    done
  done
done

python3 - "$output" "$binds" "$nets" "$programs" "$sides" "$rounds" <<'TABLE' || status=1
import os, statistics, sys
output, binds, nets, programs, sides, rounds = sys.argv[1:]
def read(program, bind, net, side):
    times, wrong = {}, 0
    for round in range(1, int(rounds) + 1):
        path = f"{output}/{program}.{bind}.{net}.{side}.{round}"
        for line in open(path) if os.path.exists(path) else ():
            size, micros, errors = line.split()
            times.setdefault(int(size), []).append(float(micros))
            wrong += 0 if errors in ("0", "N/A") else 1
    return {size: statistics.median(all) for size, all in times.items()}, wrong
total = 0
sizes = [8, 64, 512, 4096, 32768, 262144, 2097152, 16777216, 134217728]
for program in programs.split():
    print(f"{program:<16}{'cores':>8}{'net':>8}{'':>11}" + "".join(f"{size:>16}" for size in sizes))
    for bind in binds.split():
        for net in nets.split():
            reference = {}
            for side in sides.split():
                times, wrong = read(program, bind, net, side)
                if not times:
                    continue
                total += wrong
                reference = times if side == "ring" else reference
                cells = ""
                for size in sizes:
                    at = min(times, key=lambda s: abs(s - size), default=None)
                    near = at is not None and size / 2 < at <= size
                    text = f"{times[at]:.1f}" if near else "-"
                    if near and side != "ring" and at in reference:
                        text += f" ({times[at] / reference[at]:.2f})"
                    cells += f"{text:>16}"
                print(f"{'':<16}{bind:>8}{net:>8}{side:>11}{cells}")
print(f"#wrong {total}")
sys.exit(total > 0)
TABLE
echo "logs: $output"
exit "$status"
