#!/usr/bin/env bash
# Measures the time that a program's own calls wait because GIN makes copies on its GPU. The calls are
# cudaDeviceSynchronize, cudaFree, a cooperative launch, and a kernel on all multiprocessors. Two ranks, each with its
# own GPU, put 7 KiB at a time to each other. Rank 1 also calls cudaDeviceSynchronize while only rank 0 puts. A peer's
# puts must not keep the copy kernel on the GPU: exit status 1 if 99 % of these calls take more than 1 ms.
#
#   bench/gpu/delays.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# SIDES is a list of NAME:SETTING,SETTING ... with this default:
#   default: staged:MILLRACE_GIN_DIRECT=0 engines:MILLRACE_GIN_COPY_KERNEL=0
#
# ROUNDS (500) and LIMIT (90 s for each side) may be set. CUBLAS=libcublas.so.13 adds a measurement of matrix products
# beside puts. The delay starts at the end of the kernel that puts, as the host sees it. Requires two GPUs and the same
# software as gin.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_device nccl_delays
status=0
for side in ${SIDES:-default: staged:MILLRACE_GIN_DIRECT=0 engines:MILLRACE_GIN_COPY_KERNEL=0}; do
  name=${side%%:*} settings=${side#*:}
  rm -f "$work/id"
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET="${MILLRACE_NET:-shm}" \
      NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET NCCL_DEBUG_FILE="$output/$name.$rank.nccl" ${settings//,/ } \
      timeout -k 5 "${LIMIT:-90}" "$work/nccl_delays" "$rank" 2 "$work/id" "${ROUNDS:-500}" >"$output/$name.$rank.log" 2>&1 &
  done
  wait
  echo "== $name ${settings//,/ }"
  grep -hE ' behind | products: ' "$output/$name".?.log || true
  [ "$(cat "$output/$name".?.log | grep -c ' behind ')" = 17 ] || { echo "failed:"; tail -qn 3 "$output/$name".?.log; status=1; }
  awk '/while the peer puts/ && $(NF - 3) + 0 > 1000 { print "failed: the peer'"'"'s puts delay the call"; bad = 1 } END { exit bad }' \
    "$output/$name".1.log || status=1
done
exit $status
