#!/usr/bin/env bash
# Ranks of running jobs are killed, or stopped for a while, at random moments: what the others are told and how they end. Two GPUs of one host, several jobs at
# once, every rank as a host of its own.
#
#   bench/gpu/kills.sh DIR [OUTPUT]     DIR: what `millrace plugin install DIR` made; none: NCCL's own proxy, for comparison. OUTPUT: where logs go
#
# KILLS (200, SIGKILL of a random rank), STOPS (50, SIGSTOP for STOP seconds, 5), CLIENTS ("c torch", what there is), NETS ("shm socket"), RANKS ("2", also
# "2 4"), PARALLEL (4 jobs at a time), GRACE (5 seconds, MILLRACE_LOSS_GRACE), SEED. MILLRACE_ON_LOSS is the environment's. A kill takes some 5 to 15 s, most
# of it the start of the job. Exit status 1 if a survivor neither ended nor said that it ends within 2 s and the grace, a stopped peer was taken for lost, or a file was left in
# /dev/shm. Needs what compare.sh needs, and PyTorch for its part.
#
# LOSSES (20, 0 for none): programs that go on. One process asks ncclCommGetAsyncError, aborts when it is told, and joins anew, as often as its peer is killed and
# started again; three ranks of which one is killed shrink their communicator; PyTorch makes its process group anew. NCCL's own proxy is beside ours, with slots on
# the GPU, on the host, and over TCP. Some 4 minutes. Exit status 1 if one is not told within a second, a sum is wrong, something is left open, or a stall is told
# of. Alone: KILLS=0 STOPS=0. What is resident is said by its kind, early and late: Java's heap, malloc's arenas, files, shared memory, the GPU's devices.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
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
