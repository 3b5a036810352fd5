#!/usr/bin/env bash
# Compares two builds of the plugin on two GPUs of one host. The runs are interleaved (A B A B ...). Each run is an
# all-reduce of 8 B, 64 KiB and 128 MiB over shared memory and over TCP.
#
#   bench/gpu/ab.sh DIR_A DIR_B [OUTPUT]
#
# DIR_A and DIR_B are directories of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a
# temporary directory).
#
# The environment sets the amount of work: ROUNDS (5), ITERATIONS (500, of the small sizes), NETS ("shm socket") and
# SIZES ("8,65536,134217728", powers of two). A run takes about 8 s. Each round has two runs for each of NETS. ENV_A and
# ENV_B ("NAME=VALUE ...") set more variables for one side. If they are set, both directories may be the same.
#
# Prints medians in microseconds, the minimum and maximum in brackets, and B / A. Exit status 1 if a run failed or an
# element was wrong. Requires the same software as compare.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 2 && $1 != -* ]] || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
declare -A plugin environment=([A]=${ENV_A:-} [B]=${ENV_B:-})
plugin[A]=$(plugin_of "$1")
plugin[B]=$(plugin_of "$2")
output=${3:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_nccl_perf
export SIZES=${SIZES:-8,65536,134217728} TIMEOUT=${TIMEOUT:-60}
rounds=${ROUNDS:-5}
nets=${NETS:-shm socket}

for round in $(seq "$rounds"); do
  for net in $nets; do
    for side in A B; do
      run "$side.$net.$round" NCCL_NET_PLUGIN="${plugin[$side]}" MILLRACE_NET="$net" ${environment[$side]}
    done
  done
done

values() { for round in $(seq "$rounds"); do value "$1.$2.$round" "$3"; done | sort -g; } # SIDE NET BYTES
summary() { awk '{v[NR] = $1} END {if (NR) printf "%.2f [%.2f, %.2f]", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[1], v[NR]; else print "-"}'; }
lscpu | grep -E '^(Model name|CPU\(s\)|Thread|NUMA)'
timeout 20 nvidia-smi topo -m 2>/dev/null || true
echo "A: ${plugin[A]} ${environment[A]}"
echo "B: ${plugin[B]} ${environment[B]}"
awk '/wrong/ {n += $NF}
  / cpu rank / {ended++}
  END {printf "#wrong %d; %d of %d ranks came to their end\n", n, ended, ARGC - 1; exit n || ended < ARGC - 1}' "$output"/[AB].*.log && status=0 || status=1
echo "logs: $output"
printf '%-8s%12s%34s%34s%8s\n' 'us' bytes 'A median [least, greatest]' B 'B / A'
for net in $nets; do
  for size in ${SIZES//,/ }; do
    a=$(values A "$net" "$size" | summary)
    b=$(values B "$net" "$size" | summary)
    ratio=$(awk -v a="${a%% *}" -v b="${b%% *}" 'BEGIN {printf (a > 0 && b > 0 ? sprintf("%.2f", b / a) : "-")}')
    printf '%-8s%12s%34s%34s%8s\n' "$net" "$size" "$a" "$b" "$ratio"
  done
done
exit "$status"
