#!/usr/bin/env bash
# Compares all paths of NCCL's all-reduce between two GPUs of one host, in one run. NCCL takes the GPUs for two hosts
# (NCCL_HOSTID). The paths are:
# - NVLink;
# - NCCL's own SHM transport;
# - NCCL's proxy with its Socket network, with defaults and tuned;
# - NCCL's proxy over this plugin;
# - the takeover over TCP and over shared memory.
#
#   bench/gpu/compare.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# Prints microseconds per operation, the CPU seconds that rank 0 used per second, wrong elements, and the ratio of the
# takeover's time to the time of NCCL's proxy. CPU seconds are for all threads, for NCCL's proxy threads, and for
# Millrace's proxy threads. Requires two GPUs, gcc, CUDA's runtime, and NCCL with its header; ranks.sh names the
# directories that it searches. Exit status 1 if a path did not end or delivered wrong elements.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_nccl_perf

labels=()
contend() {
  labels+=("$1")
  run "$@"
}

contend nvlink NCCL_NET_PLUGIN=none NCCL_HOSTID=one
contend nccl_shm NCCL_NET_PLUGIN=none NCCL_HOSTID=one NCCL_P2P_DISABLE=1
contend proxy_socket NCCL_NET_PLUGIN=none
contend proxy_tuned NCCL_NET_PLUGIN=none NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=2 NCCL_MIN_NCHANNELS=8
contend proxy_millrace NCCL_NET_PLUGIN="$plugin" MILLRACE_TAKEOVER=0
contend takeover_tcp NCCL_NET_PLUGIN="$plugin" MILLRACE_NET=socket
contend takeover NCCL_NET_PLUGIN="$plugin"

printf '%-10s' 'us, bytes'
printf '%16s' "${labels[@]}" tcp/proxy takeover/proxy
echo
for size in 8 64 1024 4096 16384 65536 262144 1048576 4194304 16777216 67108864 134217728; do
  printf '%-10s' "$size"
  for label in "${labels[@]}"; do printf '%16s' "$(value "$label" "$size")"; done
  for label in takeover_tcp takeover; do
    awk -v a="$(value "$label" "$size")" -v b="$(value proxy_socket "$size")" 'BEGIN {printf "%16s", (b > 0 ? sprintf("%.2f", a / b) : "-")}'
  done
  echo
done
printf '%-10s' 'GB/s, 128M'
for label in "${labels[@]}"; do awk -v t="$(value "$label" 134217728)" 'BEGIN {printf "%16s", (t > 0 ? sprintf("%.1f", 134217728 / t / 1000) : "-")}'; done
echo
printf '%-10s' 'cpu s/s'
for label in "${labels[@]}"; do awk '/cpu rank/ {printf "%16.1f", $5 / $10}' "$output/$label.0.log"; done
echo
# CPU seconds per second in the measured loop, for two groups of threads. One is NCCL's proxy progress thread with the
# helpers of its Socket network. The other is Millrace's proxy threads.
threads() { # ROW COLUMN
  printf '%-10s' "$1"
  for label in "${labels[@]}"; do awk -v at="$2" '/ threads rank / {printf "%16.3f", $at / $13}' "$output/$label.0.log"; done
  echo
}
threads 'C++ proxy' 6
threads 'Java proxy' 8
printf '%-10s' '#wrong'
status=0
for label in "${labels[@]}"; do
  awk '/wrong/ {n += $NF} / cpu rank / {ended = 1} END {printf "%16s", ended ? n + 0 : "failed"; exit n || !ended}' "$output/$label.0.log" || status=1
done
echo
echo "logs: $output"
exit $status
