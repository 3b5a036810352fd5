#!/usr/bin/env bash
# Kills or stops ranks of running jobs at random moments. Records the messages of the other ranks and the way they end.
# The jobs run on two GPUs of one host, several at once. To NCCL, every rank is a separate host.
#
#   bench/gpu/kills.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`, or "none" for NCCL's own proxy as a comparison. OUTPUT is the
# directory for logs.
#
# These variables may be set:
# - KILLS (200): number of SIGKILLs of a random rank. A kill takes about 5 to 15 s, mostly for the start of the job.
# - STOPS (50): number of SIGSTOPs, for STOP (5) seconds each.
# - CLIENTS ("c torch", if available), NETS ("shm socket"), RANKS ("2", also "2 4") and SEED.
# - PARALLEL (4): jobs at a time.
# - GRACE (5): seconds, the value of MILLRACE_LOSS_GRACE. MILLRACE_ON_LOSS is taken from the environment.
#
# The exit status is 1 if a survivor neither ended nor announced its end within the grace time plus 3 s. For PyTorch it
# suffices that PyTorch got NCCL's error. It is also 1 if a stopped peer was declared lost or /dev/shm has a new file.
#
# LOSSES (20; at least 3, or 0 for none) tests programs that continue after a loss, in about 4 minutes:
# - One process asks ncclCommGetAsyncError, aborts when NCCL reports an error, and joins again. It repeats this each
#   time its peer is killed and restarted.
# - Three ranks shrink their communicator after one of them is killed.
# - PyTorch creates its process group again.
#
# The script compares NCCL's own proxy with ours, with slots on the GPU, on the host, and over TCP. Exit status 1 if
# NCCL reports a loss after more than a second, a sum is wrong, resources stay open, or a stall is reported. KILLS=0
# STOPS=0 runs this part alone. The output lists resident memory by kind, early and late: Java's heap, malloc's arenas,
# files, shared memory, and the GPU's devices.
#
# Requires the same software as compare.sh, and PyTorch for its part.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,31s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=
[ "$1" = none ] || plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clients=${CLIENTS:-c torch}
arguments=()
if [[ " $clients " == *" c "* ]]; then
  build_nccl nccl_loop
  arguments+=(--c "$work/nccl_loop")
fi
if [[ " $clients " == *" torch "* ]] && python3 -c 'import torch' 2>/dev/null; then
  arguments+=(--torch "$here/torch_loop.py")
fi
status=0
if [ "${LOSSES:-20}" -gt 0 ]; then
  going=()
  for argument in "${arguments[@]}"; do
    case $argument in
      --c) build_nccl nccl_life; going+=(--c "$work/nccl_life");;
      --torch) going+=(--torch "$here/torch_goes_on.py");;
    esac
  done
  python3 "$here/goes_on.py" "${going[@]}" --plugin "$plugin" --output "$output" --losses "${LOSSES:-20}" || status=1
fi
[ $((${KILLS:-200} + ${STOPS:-50})) -gt 0 ] || exit $status
python3 "$here/kills.py" "${arguments[@]}" --plugin "$plugin" --output "$output" --kills "${KILLS:-200}" --stops "${STOPS:-50}" --stop "${STOP:-5}" \
  --parallel "${PARALLEL:-4}" --grace "${GRACE:-5}" --nets "${NETS:-shm socket}" --ranks "${RANKS:-2}" --seed "${SEED:-0}" || status=1
exit $status
