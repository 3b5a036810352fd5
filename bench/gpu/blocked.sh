#!/usr/bin/env bash
# Checks that programs make progress while kernels wait for GIN (nccl_blocked.cu). Two ranks, each with its own GPU, run
# rounds with eight blocked streams, and allocate and free memory.
#
#   bench/gpu/blocked.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# ROUNDS (1000) and LIMIT (60 s for each run) may be set. Prints a line for each path of the bytes and for each variant
# of nccl_blocked. Exit status 1 if a run did not end or delivered wrong bytes. A run that stops in the middle (reset,
# exit) only has to end. Requires two GPUs and the same software as gin.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_device nccl_blocked
status=0
staged=MILLRACE_GIN_DIRECT=0
tcp="$staged MILLRACE_GIN_SHARED=0 MILLRACE_NET=socket"

blocked() { # LABEL HOW ENVIRONMENT...
  local label=$1 how=$2 rank pids=() codes=()
  shift 2
  rm -f "$work/id"
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET=shm NCCL_DEBUG=WARN "$@" \
      timeout -s KILL "${LIMIT:-60}" "$work/nccl_blocked" "$rank" 2 "$work/id" "${ROUNDS:-1000}" "$how" >"$output/$label.$rank.log" 2>&1 </dev/null &
    pids+=($!)
  done
  for rank in 0 1; do
    local code=0
    wait "${pids[rank]}" || code=$?
    codes+=($code)
  done
  echo "== $label: $how ${*}: exit status ${codes[*]}"
  grep -h '^rank ' "$output/$label".?.log || true
  [ "${codes[*]}" = "0 0" ] || { status=1; tail -qn 3 "$output/$label".?.log | cut -c1-300; }
}

while read -r way settings; do
  for how in memory waiting capture; do
    blocked "$way.$how" $how $settings
  done
done <<X
direct
engines MILLRACE_GIN_COPY_KERNEL=0
staged $staged
staged_engines $staged MILLRACE_GIN_COPY_KERNEL=0
tcp $tcp
X
blocked one_connection memory CUDA_DEVICE_MAX_CONNECTIONS=1
blocked lazy memory CUDA_MODULE_LOADING=LAZY
blocked launch_blocking memory CUDA_LAUNCH_BLOCKING=1
for how in reset exit; do
  ROUNDS=20 blocked "$how" "$how"
  ROUNDS=20 blocked "${how}_tcp" "$how" $tcp
done
echo "logs: $output"
exit $status
