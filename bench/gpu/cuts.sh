#!/usr/bin/env bash
# Cuts all TCP connections between two GPUs of one host again and again. NCCL takes the GPUs for two hosts. Checks that
# the sums of nccl_perf and the losses of PyTorch stay the same.
#
#   bench/gpu/cuts.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# The connections pass through a forwarder (cuts.py). A preloaded library (cut_connect.c) redirects them to it. The
# forwarder resets the connections, loses data in flight, or delays it, for .1 to 3 s each time. These variables may be
# set:
# - CUTS (10), SEED (1), TLS=1 and MILLRACE_SECRET.
# - STEPS (4000): steps of ddp.py, which must run longer than the cuts, about 30 s.
# - ITERATIONS (3000): iterations of all-reduce.
# - DEADLINE (60s): the value of MILLRACE_RECONNECT_DEADLINE.
# - CLIENTS ("c torch"): the programs to run.
#
# Exit status 1 if a run failed, a sum was wrong, or fewer cuts were made. The same applies if losses or weights of the
# cut run differ from the uncut run in any digit. Requires the same software as compare.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,20s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O2 -Wall -shared -fPIC "$here/cut_connect.c" -o "$work/cut_connect.so" -ldl
address=127.0.0.2
common=(NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET=socket MILLRACE_SOCKET_ADDRESSES="$address" MILLRACE_TLS="${TLS:-0}" NCCL_DEBUG=WARN
  MILLRACE_RECONNECT_DEADLINE="${DEADLINE:-60s}")
through=(LD_PRELOAD="$work/cut_connect.so" CUT_ADDRESS="$address" CUT_FORWARDER="$work/forwarder")
cuts=${CUTS:-10}
status=0

cutting() { # LABEL FUNCTION: runs the function while connections are cut
  local label=$1
  mkfifo "$work/$label"
  python3 "$here/cuts.py" --path "$work/forwarder" --address "$address" --cuts "$cuts" --seed "${SEED:-1}" <"$work/$label" >"$output/$label.cuts.log" &
  local forwarder=$!
  exec 9>"$work/$label"
  until grep -q ready "$output/$label.cuts.log"; do sleep 0.1; done
  "$2" "$label" "${through[@]}"
  exec 9>&-
  wait "$forwarder"
  sed -n '2,$p' "$output/$label.cuts.log"
  tail -n 1 "$output/$label.cuts.log" | awk -v cuts="$cuts" '{exit !($1 == cuts && $5 > 0)}' ||
    { echo "$label: the job ended before $cuts cuts were made and survived: set STEPS or ITERATIONS higher"; status=1; }
}

perf() { # LABEL ENVIRONMENT...
  run "$1" "${common[@]}" "${@:2}"
}

ddp() { # LABEL ENVIRONMENT...
  local label=$1 rank ranks=()
  shift
  for rank in 0 1; do
    env "${common[@]}" "$@" RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="${MASTER_PORT:-29500}" NCCL_HOSTID="h$rank" NCCL_SOCKET_IFNAME=lo \
      OMP_NUM_THREADS=1 STEPS="${STEPS:-4000}" timeout -k 5 "${TIMEOUT:-400}" python3 "$here/ddp.py" >"$output/$label.$rank.log" 2>&1 &
    ranks+=($!)
  done
  for rank in "${ranks[@]}"; do wait "$rank" || { echo "$label: a rank failed"; tail -n 5 "$output/$label".?.log; status=1; }; done
}

if [[ " ${CLIENTS:-c torch} " == *" c "* ]]; then
  build_nccl_perf
  export SIZES=${SIZES:-8,65536,8388608,134217728} ITERATIONS=${ITERATIONS:-3000} TIMEOUT=${TIMEOUT:-400}
  cutting perf_cut perf
  awk '/ wrong / {for (i = 2; i <= NF; i++) if ($(i - 1) == "wrong") n += $i}
    / cpu rank / {ended++}
    END {printf "all-reduce: #wrong %d; %d of 2 ranks came to their end\n", n, ended; exit n || ended < 2}' "$output"/perf_cut.[01].log || status=1
fi
if [[ " ${CLIENTS:-c torch} " == *" torch "* ]]; then
  ddp ddp_uncut
  cutting ddp_cut ddp
  for label in ddp_uncut ddp_cut; do grep -h '^losses' "$output/$label.0.log" | sed 's/ (.*//' >"$output/$label.losses" || status=1; done
  if [ -s "$output/ddp_uncut.losses" ] && cmp -s "$output/ddp_uncut.losses" "$output/ddp_cut.losses"; then
    echo "losses and weights equal to the last digit: $(cat "$output/ddp_cut.losses")"
  else
    echo "losses and weights DIFFER:"
    cat "$output"/ddp_*.losses
    status=1
  fi
fi
echo "logs: $output"
exit "$status"
