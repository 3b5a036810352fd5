#!/usr/bin/env bash
# Compares kernels that unpack (MILLRACE_UNPACK=1) with kernels that do not, on two GPUs of one host over shared memory.
# The operations are all-reduce and send/receive, in a takeover and with NCCL's own proxy.
#
#   bench/gpu/unpack.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# NETS ("shm"), ITERATIONS (40 of the small sizes) and SIZES ("65536,8388608,67108864", powers of two) set the amount of
# work. A run takes about 5 s, with 8 runs for each of NETS. Both sides have rings and no PAT, because UNPACK requires
# this. Prints microseconds per operation without and with UNPACK, and their ratio. Exit status 1 if a run failed, an
# element was wrong, or NCCL did not report that it uses the device. Requires the same software as compare.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_nccl_perf
export SIZES=${SIZES:-65536,8388608,67108864} TIMEOUT=${TIMEOUT:-20} ITERATIONS=${ITERATIONS:-40}
nets=${NETS:-shm}
collectives="all_reduce sendrecv"

for net in $nets; do
  for COLLECTIVE in $collectives; do
    for takeover in 1 0; do
      for unpack in 0 1; do
        run "$net.$COLLECTIVE.$takeover.$unpack" NCCL_NET_PLUGIN="$plugin" MILLRACE_NET="$net" MILLRACE_TAKEOVER=$takeover MILLRACE_UNPACK=$unpack \
          NCCL_ALGO=Ring NCCL_PAT_ENABLE=0 NCCL_NET_SHARED_BUFFERS=0 NCCL_MIN_NCHANNELS=8 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT || true
      done
    done
  done
done

status=0
cd "$output"
awk '/ wrong / {n += $NF}
  / cpu rank / {ended++}
  END {printf "#wrong %d; %d of %d ranks came to their end\n", n, ended, ARGC - 1; exit n || ended < ARGC - 1}' ./*.[01].[01].[01].log || status=1
for log in ./*.[01].1.[01].log; do
  grep -q 'Using NCCL_NET_DEVICE_UNPACK' "$log" || { echo "$log: NCCL did not use the device"; status=1; }
done
echo "logs: $output"
printf '%-6s%-12s%-12s%12s%16s%16s%8s\n' net what proxy bytes 'us without' 'us with' ratio
for net in $nets; do
  for COLLECTIVE in $collectives; do
    for takeover in 1 0; do
      for size in ${SIZES//,/ }; do
        without=$(value "$net.$COLLECTIVE.$takeover.0" "$size")
        with=$(value "$net.$COLLECTIVE.$takeover.1" "$size")
        proxy=$([ $takeover = 1 ] && echo Java || echo "NCCL's")
        printf '%-6s%-12s%-12s%12s%16s%16s%8s\n' "$net" "$COLLECTIVE" "$proxy" "$size" "${without:--}" "${with:--}" \
          "$(awk -v a="${without:-0}" -v b="${with:-0}" 'BEGIN {printf (a > 0 && b > 0 ? sprintf("%.2f", b / a) : "-")}')"
      done
    done
  done
done
exit "$status"
