#!/bin/bash
# Compares clear text and TLS over TCP, alternately and on the same cores. One measurement is the engine's all-reduces
# between two processes. The other is the traffic of a takeover between two hosts, in C (takeover_loop.c).
#
#   bench/tls.sh [ROUNDS] [SECONDS]
#
# Prints warm microseconds per operation for each size and round. At the end it prints the medians, and the share of the
# clear bandwidth that TLS reaches. No round starts after SECONDS (270). So the run ends within SECONDS and one round,
# which takes about 80 seconds on two cores. Run it on an idle machine. Requires target/millrace.jar (mvn package
# -DskipTests) and a C compiler.
set -u
cd "$(dirname "$0")/.." || exit 1
rounds=${1:-5}
limit=${2:-270}
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
[ -e target/millrace.jar ] || { echo "target/millrace.jar is not there: mvn package -DskipTests" >&2; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export MILLRACE_NET=socket MILLRACE_SECRET=of-the-benchmark NCCL_SOCKET_IFNAME=lo
sizes=(8 64K 2M 128M)
# Numbers of warm-up operations for the JIT compiler, and of timed operations, which take a second or two.
declare -A warm=([8]=40000 [64K]=8000 [2M]=400 [128M]=8) timed=([8]=20000 [64K]=4000 [2M]=200 [128M]=8)

"$java" -jar target/millrace.jar plugin install "$work/plugin" > "$work/install.log" 2>&1 \
  && cc -std=gnu11 -O2 -pthread -DNET_VERSION=12 -I headers -I src/test/c/plugin bench/takeover_loop.c -o "$work/loop" \
  || { cat "$work/install.log" >&2; exit 1; }

said() { # WAY TLS: reads lines with a size and a time, and prints and stores the measurements
  while read -r size time; do
    echo "$1 $size $([ "$2" = 1 ] && echo TLS || echo clear) $time" | tee -a "$work/times"
  done
}

for ((round = 1; round <= rounds && SECONDS < limit; round++)); do
  for tls in $((round % 2)) $((1 - round % 2)); do
    export MILLRACE_TLS=$tls
    for size in "${sizes[@]}"; do
      timeout 60 "$java" -jar target/millrace.jar perf all_reduce --processes -r 2 -b "$size" -e "$size" \
        -w "${warm[$size]}" -n "${timed[$size]}" | awk -v size="$size" '$1 ~ /^[0-9]+$/ {print size, $6; exit}' \
        | said engine $tls
    done
    timeout 100 "$work/loop" "$work/plugin/libnccl-net-millrace.so" "${sizes[@]}" 2> "$work/loop.log" \
      | awk '/^[0-9]+[KM]? [0-9.]+$/' | said takeover $tls
  done
done

median() { # WAY SIZE KIND
  awk -v way="$1" -v size="$2" -v kind="$3" '$1 == way && $2 == size && $3 == kind {print $4}' "$work/times" \
    | sort -n | awk '{all[NR] = $1} END {print NR % 2 ? all[(NR + 1) / 2] : (all[NR / 2] + all[NR / 2 + 1]) / 2}'
}

echo
printf '%-10s %6s %12s %12s %10s %12s\n' "" size "clear (us)" "TLS (us)" clear/TLS "TLS - clear"
for way in engine takeover; do
  for size in "${sizes[@]}"; do
    clear=$(median $way "$size" clear) tls=$(median $way "$size" TLS)
    awk -v way=$way -v size="$size" -v clear="$clear" -v tls="$tls" 'BEGIN {
      if (clear > 0 && tls > 0)
        printf "%-10s %6s %12.1f %12.1f %10.2f %12.1f\n", way, size, clear, tls, clear / tls, tls - clear
      else
        printf "%-10s %6s: nothing was measured\n", way, size}'
  done
done
