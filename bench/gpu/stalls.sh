#!/usr/bin/env bash
# Two ranks of PyTorch on one GPU, of which rank 1 does not join, sleeps, is stopped, or is killed. Prints what
# `millrace why` and NCCL's RAS report of the same run.
#
#   bench/gpu/stalls.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs and reports (default: a
# temporary directory). Variable CASES ("absent sleep stop kill"): the cases to run; NET (shm): the network. Under MPS
# (nvidia-cuda-mps-control -d) two ranks share the GPU. A kill also fails the other rank's kernels, and MPS may refuse
# later programs: the case kill is the last.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
export NCCL_NET_PLUGIN=$plugin NCCL_NET=Millrace MILLRACE_NET=${NET:-shm} NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=WARN MASTER_ADDR=127.0.0.1
export WORLD_SIZE=2

for case in ${CASES:-absent sleep stop kill}; do
  export MASTER_PORT=$((20000 + RANDOM % 20000))
  ranks=()
  for rank in 0 1; do
    RANK=$rank NCCL_HOSTID=host$rank timeout -k 5 90 python3 "$here/stalls.py" rank "$case" \
      > "$output/$case.$rank.log" 2>&1 &
    ranks+=($!)
  done
  timeout 60 bash -c "until grep -qs stalls '$output/$case.1.log'; do sleep .2; done"
  sleep 15
  "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$(dirname "$plugin")/millrace.jar" why > "$output/$case.why.txt" 2>&1
  why=$?
  "${JAVA_HOME:+$JAVA_HOME/bin/}java" -jar "$(dirname "$plugin")/millrace.jar" why --json > "$output/$case.why.json" 2>&1
  timeout 25 python3 "$here/stalls.py" ras > "$output/$case.ras.json" 2> "$output/$case.ras.err"
  pkill -CONT -P "${ranks[1]}"
  [[ $case == kill ]] && kill "${ranks[0]}" 2>/dev/null
  wait "${ranks[@]}"
  printf '%s: why exits with %s: %s\n' "$case" "$why" "$(head -2 "$output/$case.why.txt" | cut -c1-300 | tr '\n' ' ')"
  printf '  RAS: %s\n' "$(python3 - "$output/$case.ras.json" <<'P'
import json, sys
text = open(sys.argv[1]).read()
try:
    for each in json.loads(text)["communicators"]:
        print({key: each[key] for key in each if key != "ranks"}, end=" ")
        print([(rank["rank"], rank["collective_counts"]) for rank in each["ranks"]])
except (ValueError, KeyError) as failure:
    print("no answer" if not text else f"no JSON: {failure}")
P
)"
  printf '  reports on standard error: %s; results: %s\n' "$(grep -h 'nothing moves' "$output/$case".?.log | head -1 | cut -c1-250)" \
    "$(grep -hE '^(right|WRONG)' "$output/$case".?.log | tr '\n' ' ')"
done
