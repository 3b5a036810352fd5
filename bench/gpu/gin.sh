#!/usr/bin/env bash
# GIN between GPUs of one host that NCCL takes for several (NCCL_HOSTID): NCCL's unmodified device API, its queues served by this plugin.
#
#   bench/gpu/gin.sh DIR [OUTPUT]     DIR: what `millrace plugin install DIR` made. OUTPUT: where logs go (default: a temporary directory)
#
# Bytes travel from GPU to GPU; MILLRACE_GIN_DIRECT=0 stages them in memory that the ranks share, and MILLRACE_GIN_SHARED=0 with it sends them over the network.
#
# RANKS (2), RANKS_PER_HOST (1), MAX_BYTES (64 MiB) and ITERATIONS (400) may be set. Needs as many GPUs, nvcc, and NCCL 2.28 or newer with its headers: NCCL_HOME and CUDA_HOME say
# where, else python3's nvidia.nccl package and /usr/local/cuda.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
plugin=$(realpath "$1")/libnccl-net-millrace.so
[ -e "$plugin" ] || { echo "there is no $plugin: run 'millrace plugin install $1' first" >&2; exit 2; }
output=${2:-$(mktemp -d)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
NCCL_HOME=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
# DOCA's headers, which NCCL's own backend for NICs includes, are seldom there
"$CUDA_HOME/bin/nvcc" -O2 -std=c++17 -arch=native -DNCCL_GIN_GDAKI_ENABLE=0 -I"$NCCL_HOME/include" "$here/nccl_gin.cu" -o "$work/nccl_gin" \
  -L"$NCCL_HOME/lib" -l:libnccl.so.2 -Xlinker -rpath="$NCCL_HOME/lib"
ranks=${RANKS:-2}
for network in ${NETWORKS:-shm socket}; do
  rm -f "$work/id"
  for ((rank = 0; rank < ranks; rank++)); do
    env NCCL_HOSTID="host$((rank / ${RANKS_PER_HOST:-1}))" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" MILLRACE_NET="$network" \
      timeout "${LIMIT:-90}" "$work/nccl_gin" "$rank" "$ranks" "$work/id" "${MAX_BYTES:-67108864}" "${ITERATIONS:-400}" >"$output/gin_$network.$rank.log" 2>&1 &
  done
  wait
  echo "== $network"
  grep -hE 'ranks,|put|values|round trip' "$output/gin_$network.0.log" || true
  grep -h ' wrong ' "$output/gin_$network".?.log | grep '^rank' || { echo "failed:"; tail -n 5 "$output/gin_$network".?.log; }
done
echo "logs: $output"
