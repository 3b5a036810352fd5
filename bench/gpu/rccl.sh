#!/usr/bin/env bash
# Runs rccl-tests with and without this plugin on two AMD GPUs, and prints one table to send to the project.
#
#   bench/gpu/rccl.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# RCCL_TESTS must be set to the folder of the rccl-tests programs, built with MPI=1. The two ranks run on this host,
# and RCCL takes them for two hosts (NCCL_HOSTID). HOSTS ("A,B") runs one rank on each of two hosts instead. DIR and
# RCCL_TESTS must then exist on both. These variables may be set, too:
# - PROGRAMS ("all_reduce all_gather reduce_scatter alltoall sendrecv") and SIZES ("-b 8 -e 128M -f 8").
# - ENV ("NAME=VALUE ..."): more variables for all runs.
#
# There are four ways. rccl is RCCL alone with its Socket network, and proxy is RCCL's own proxy over this plugin. shm and
# tcp are the takeover over shared memory (only on one host) and over TCP. Times are out-of-place microseconds of one
# run. "wrong" is the number of wrong elements. "taken" is the number of processes in which Java took the proxy over.
#
# Exit status 1 if an element was wrong, a run failed, or a takeover did not happen. Requires Open MPI's mpirun.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* && -n ${RCCL_TESTS:-} ]] || { sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
output=$(realpath "$output")
programs=${PROGRAMS:-all_reduce all_gather reduce_scatter alltoall sendrecv}
ways=(rccl proxy shm tcp)
[ -z "${HOSTS:-}" ] || ways=(rccl proxy tcp)

# WAY PROGRAM ENVIRONMENT... RCCL logs to stderr, in a separate file. RCCL connects ranks after rccl-tests has printed half
# of a row, so RCCL's lines on stdout would break the row.
tests() {
  local log=$output/$2.$1 program=$2 rank ranks=() settings=() each
  shift 2
  for each in "$@" RCCL_AINIC_ROCE="${RCCL_AINIC_ROCE:-0}" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET \
    NCCL_DEBUG_FILE=/dev/stderr ${ENV:-}; do
    settings+=(-x "$each")
  done
  for rank in 0 1; do
    [ "$rank" = 0 ] || ranks+=(:)
    ranks+=(-np 1)
    [ -z "${HOSTS:-}" ] || ranks+=(--host "$(cut -d, -f$((rank + 1)) <<< "$HOSTS")")
    [ -n "${HOSTS:-}" ] || ranks+=(-x "NCCL_HOSTID=host$rank" -x "NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo}")
    # shellcheck disable=SC2206
    ranks+=("${settings[@]}" "$RCCL_TESTS/${program}_perf" ${SIZES:--b 8 -e 128M -f 8} -n 20 -w 5 -g 1 -c 1)
  done
  timeout -k 5 "${TIMEOUT:-180}" mpirun --allow-run-as-root --bind-to none "${ranks[@]}" > "$log" 2> "$log.err" || echo FAILED >> "$log"
}

for program in $programs; do
  for way in "${ways[@]}"; do
    case $way in
      rccl) tests "$way" "$program" NCCL_NET_PLUGIN=none NCCL_NET=Socket ;;
      proxy) tests "$way" "$program" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_TAKEOVER=0 ;;
      shm) tests "$way" "$program" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_TAKEOVER=1 MILLRACE_NET=shm ;;
      tcp) tests "$way" "$program" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_TAKEOVER=1 MILLRACE_NET=socket ;;
    esac
  done
done

echo "date    $(date -u +%F)"
echo "kernel  $(uname -sr), $(nproc) cores"
echo "ROCm    $(cat /opt/rocm/.info/version 2> /dev/null || echo -)"
echo "GPUs    $( (rocminfo 2> /dev/null || true) | awk '/Marketing Name/ && /Instinct|Radeon/' | sed 's/.*: *//' | sort | uniq -c | tr -s ' \n' ' ')"
echo "cards   $(cat /sys/class/infiniband/*/device/vendor 2> /dev/null | sort | uniq -c | tr -s ' \n' ' ')"
python3 - "$output" "$programs" "${ways[@]}" <<'TABLE'
import glob, re, sys
output, programs, *ways = sys.argv[1:]
bad = 0
row_begin = r"\s+\d+\s+\d+\s+\w+\s+\w+\s+-?\d+"
row = re.compile(row_begin + r"(\s+\S+){3}\s+(\d+|N/A)(\s+\S+){3}\s+(\d+|N/A)(\s|$)")
read = lambda name: open(f"{output}/{name}", errors="replace").read()
tables = {(p, w): read(f"{p}.{w}").splitlines() for p in programs.split() for w in ways}
logs = {(p, w): read(f"{p}.{w}.err") for p, w in tables}
print("plugin ", " | ".join(sorted({m for t in logs.values() for m in re.findall(r"network table v[^,]*, [^,]*", t)})) or "-")
print(f"{'us':<16}{'bytes':>11}" + "".join(f"{way:>12}" for way in ways))
for program in programs.split():
    rows, last = {}, {}
    for way in ways:
        table = tables[program, way]
        found = [line.split() for line in table if row.match(line)]
        broken = sum(bool(re.match(row_begin, line)) for line in table) > len(found)
        wrong = sum(int(cells[at]) for cells in found for at in (8, 12) if cells[at] != "N/A")
        taken = logs[program, way].count("Java takes the proxy over")
        failed = "FAILED" in table or broken or not found or (way in ("shm", "tcp") and not taken)
        bad += failed or wrong > 0
        last[way] = "failed" if failed else f"{wrong}/{taken}"
        for cells in found:
            rows.setdefault(int(cells[0]), {})[way] = cells[5]
    for size in sorted(rows):
        print(f"{program:<16}{size:>11}" + "".join(f"{rows[size].get(way, '-'):>12}" for way in ways))
    print(f"{program:<16}{'wrong/taken':>11}" + "".join(f"{last[way]:>12}" for way in ways))
print("logs   ", output)
sys.exit(bad > 0)
TABLE
