#!/usr/bin/env bash
# Runs all-reduce and GIN over two rails between two GPUs of one host, which NCCL takes for two hosts. The rails are
# loopback addresses, and GIN's bytes travel over the network.
#
#   bench/gpu/rails.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# Runs all-reduce over one rail, over two rails, and over two rails with a cut. For the cut each rank closes the second
# rail of one of its connections in mid-transfer. Runs GIN over two rails, without and with this cut. Prints
# microseconds per operation, the bytes that each rail delivered, and the lost rails. Exit status 1 if a run failed, an
# element was wrong, a rail carried nothing, or an expected cut did not happen.
#
# ADDRESSES ("127.0.0.1,127.0.0.2", two), SIZES ("8,65536,8388608,134217728", powers of two) and ITERATIONS (200 of the
# small sizes) may be set. GIN=0 omits GIN. Requires the same software as compare.sh and gin.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build_nccl_perf
export SIZES=${SIZES:-8,65536,8388608,134217728} ITERATIONS=${ITERATIONS:-200}
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET MILLRACE_NET=socket
addresses=${ADDRESSES:-127.0.0.1,127.0.0.2}
cut=cut:frame=2000,rail=1

run one NCCL_NET_PLUGIN="$plugin" MILLRACE_SOCKET_ADDRESSES="${addresses%%,*}"
run two NCCL_NET_PLUGIN="$plugin" MILLRACE_SOCKET_ADDRESSES="$addresses"
run cut NCCL_NET_PLUGIN="$plugin" MILLRACE_SOCKET_ADDRESSES="$addresses" MILLRACE_FAULT="$cut"
labels=(two cut)
if [ "${GIN:-1}" = 1 ]; then
  gin() { # LABEL ENVIRONMENT...
    local label=$1
    shift
    mkdir -p "$output/$label"
    env NETWORKS=socket EXPERT_RANKS=2 MILLRACE_GIN_DIRECT=0 MILLRACE_GIN_SHARED=0 MILLRACE_SOCKET_ADDRESSES="$addresses" "$@" \
      "$here/gin.sh" "${plugin%/*}" "$output/$label" >"$output/$label.all.log" 2>&1 || echo "$label failed" >>"$output/$label.all.log"
    for rank in 0 1; do cat "$output/$label"/*."$rank".log >"$output/$label.$rank.log"; done
  }
  gin gin_two
  gin gin_cut MILLRACE_FAULT=cut:frame=30,rail=1,connection=1
  labels+=(gin_two gin_cut)
fi

status=0
cd "$output"
awk '/ wrong / {for (i = 2; i <= NF; i++) if ($(i - 1) == "wrong") n += $i}
  / cpu rank / {ended++}
  END {printf "all-reduce: #wrong %d; %d of %d ranks came to their end\n", n, ended, ARGC - 1; exit n || ended < ARGC - 1}' {one,two,cut}.[01].log || status=1
if [ "${GIN:-1}" = 1 ]; then
  grep -hE '^rank .* wrong |failed' gin_*.all.log || true
  ! grep -q failed gin_*.all.log && awk '/^rank .* wrong / {seen++; for (i = 2; i < NF; i++) if ($i == "wrong" && $(i + 1) != 0) bad++}
    END {exit bad || !seen}' gin_*.all.log || status=1
fi
for label in "${labels[@]}"; do
  # without the bytes from a rank to itself, which warm it up
  grep -h 'bytes delivered over ' "$label".[01].log | grep -vE '^[^:]*:([0-9]+):.* pid \1 on ' | sed 's/.*bytes delivered over //' | sed -E 's/ \([^)]*\)//g; s/rail [0-9]+: //g; s/,//g' |
    awk -v label="$label" '{for (i = 1; i <= NF; i++) sum[i] += $i; n = NF > n ? NF : n}
      END {
        printf "%-8s", label
        for (i = 1; i <= n; i++) {printf "  rail %d: %.1f MB", i - 1, sum[i] / 1e6; bad = bad || !sum[i]}
        print ""
        exit bad || n < 2
      }' ||
    { echo "$label: a rail carried nothing"; status=1; }
  lost=$(cat "$label".[01].log | grep -c 'cut on purpose' || true)
  [[ $label != *cut || $lost -gt 0 ]] || { echo "$label: no rail was cut"; status=1; }
  cat "$label".[01].log | grep -hoE 'lost rail .* \(cut on purpose\).*' | head -n 4 || true
done
echo "logs: $output"
printf '%12s%12s%12s%12s\n' bytes 'us, one' 'two' 'two, cut'
for size in ${SIZES//,/ }; do
  printf '%12s%12s%12s%12s\n' "$size" "$(value one "$size")" "$(value two "$size")" "$(value cut "$size")"
done
exit "$status"
