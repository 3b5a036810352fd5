#!/bin/bash
# All-reduce between two processes over TCP, in clear and under TLS, in turns: bench/tls.sh [ROUNDS] [SIZES...]
# Run it where nothing else runs; it prints microseconds out of place, a line for each size and round.
cd "$(dirname "$0")/.." || exit 1
rounds=${1:-3}
shift
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(8 64K 2M 128M)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
export MILLRACE_NET=socket MILLRACE_SECRET=of-the-benchmark
for ((round = 1; round <= rounds; round++)); do
  for size in "${sizes[@]}"; do
    for tls in 0 1; do
      time=$(MILLRACE_TLS=$tls "$java" -jar target/millrace.jar perf all_reduce --processes -r 2 -b "$size" -e "$size" \
        | awk '$1 ~ /^[0-9]+$/ {print $6; exit}')
      echo "$size $([ $tls = 1 ] && echo TLS || echo clear) $time"
    done
  done
done
