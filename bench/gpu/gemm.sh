#!/usr/bin/env bash
# What a program's matrix products lose while two ranks send each other small pieces by GIN on the same GPU, and what the round trips lose: with the GPU's copy
# engines, and with the kernel for short copies (MILLRACE_GIN_COPY_KERNEL, microseconds).
#
#   bench/gpu/gemm.sh DIR [OUTPUT]     DIR: what `millrace plugin install DIR` made. OUTPUT: where logs go (default: a temporary directory)
#
# KERNELS ("0 200 50000"), ITERATIONS (15000) and ROUNDS (1) may be set. Ranks and the products are three processes of one GPU: start MPS before. Each rank has
# a copying kernel of its own there, so that the products have to do with two of them. Needs PyTorch beside what gin.sh needs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_device nccl_gin
first='round trip,         0 B' last='round trip,     65536 B'

ranks() { # LABEL MICROSECONDS: both, in the background
  local rank
  rm -f "$work/id"
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" MILLRACE_NET=shm MILLRACE_GIN_COPY_KERNEL="$2" \
      NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET timeout -k 5 "${LIMIT:-120}" "$work/nccl_gin" "$rank" 2 "$work/id" 65536 "${ITERATIONS:-15000}" \
      >"$output/$1.$rank.log" 2>&1 &
  done
}

times() { # LABEL: of 0 B, 8 B, 1 KiB, 64 KiB
  sed -n 's/^round trip, *[0-9]* B + signal: *\([0-9.]*\) us.*/\1/p' "$output/$1.0.log" | awk '{printf "%9s", $1} END {print ""}'
}

printf '%-34s%-38s%s\n' '' products 'round trips of 0, 8, 1024, 65536 B, us'
for round in $(seq "${ROUNDS:-1}"); do
  printf '%-34s%s\n' 'nothing beside them' "$(python3 "$here/gemm.py" - - -)"
  for micros in ${KERNELS:-0 200 50000}; do
    ranks "alone.$micros.$round" "$micros"
    wait
    printf '%-34s%-38s%s\n' "MILLRACE_GIN_COPY_KERNEL=$micros" none "$(times "alone.$micros.$round")"
    ranks "beside.$micros.$round" "$micros"
    products=$(python3 "$here/gemm.py" "$output/beside.$micros.$round.0.log" "$first" "$last")
    wait
    printf '%-34s%-38s%s\n' "MILLRACE_GIN_COPY_KERNEL=$micros" "$products" "$(times "beside.$micros.$round")"
  done
done
grep -h '^rank .* wrong [1-9]' "$output"/*.log && exit 1
grep -L '^rank .* wrong 0' "$output"/*.log | sed 's/^/failed: /'
