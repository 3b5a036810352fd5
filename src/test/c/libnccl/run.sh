#!/bin/sh
# Runs the ranks of a test of libnccl on this machine, without a GPU. `mvn test -Pnccl` compiles the programs.
#
# run.sh LIBNCCL RANKS HOSTS COUNTS TYPES OPERATORS [COLLECTIVE...]
# run.sh LIBNCCL RANKS HOSTS random SEED ROUNDS
# run.sh LIBNCCL RANKS HOSTS life SCENARIO
# run.sh LIBNCCL bench SCRIPT ARGUMENT...
#
# ranks.cpp describes the arguments; type 7 is float, operators 0 and 2 are sum and max. The ranks report the names of
# HOSTS different hosts to NCCL. The scenario kill needs as many hosts as ranks. The plugin of this checkout takes the
# connections over; NCCL_NET_PLUGIN=none selects NCCL's own network. All variables of NCCL and of the plugin apply. The
# exit status is 0 if all elements are right. The last form runs a script of bench/gpu whose program has no kernels.
# CUDA_HOME (default: /usr/local/cuda) has CUDA's headers.
case "$2:$3" in bench:* | [1-9]*:[1-9]*) ;; *) set -- ;; esac
if [ $# -lt 4 ]; then sed -n '2,/^case/s/^# \{0,1\}//p' "$0"; exit 2; fi
fail() { echo "run.sh: $*" >&2; exit 2; }
{ [ -f "$1" ] && [ "$1" -ef "$(dirname "$1")/libnccl.so.2" ]; } || fail "there is no library $1 with the name libnccl.so.2"
built=$(cd "$(dirname "$0")/../../../.." && pwd)/target/libnccl
[ -x "$built/ranks" ] || fail "$built has no programs: run mvn test -Pnccl -Dmillrace.nccl=$1 first"
export MILLRACE_NCCL="$1"
export LD_LIBRARY_PATH="$built:$(dirname "$1")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_IB_DISABLE=1
# The interpreter has no kernels for PAT.
export NCCL_PAT_ENABLE=0 NCCL_CUMEM_ENABLE="${NCCL_CUMEM_ENABLE:-0}" NCCL_CUMEM_HOST_ENABLE="${NCCL_CUMEM_HOST_ENABLE:-0}"
export MILLRACE_DEVICE_SLOTS="${MILLRACE_DEVICE_SLOTS:-0}"
# Each channel of a kernel is a thread.
export NCCL_MAX_CTAS="${NCCL_MAX_CTAS:-4}"
if [ "$2" = bench ]; then
  export NCCL_HOME="${1%/lib/*}"
  mkdir -p "$built/cuda/lib64"
  ln -sfn "${CUDA_HOME:-/usr/local/cuda}/include" "$built/cuda/include"
  ln -sf ../../libcuda-on-cpu.so "$built/cuda/lib64/libcudart.so"
  export CUDA_HOME="$built/cuda"
  # The script selects NCCL's own network or the plugin, and then also NCCL_NET.
  shift 2
  exec "$@"
fi
{ [ "$2" -le 8 ] && [ "$3" -le "$2" ]; } 2>/dev/null || fail "$2 ranks on $3 hosts: give at most 8 ranks and as many hosts"
[ "$4 $5" != "life kill" ] || { [ "$2" -ge 2 ] && [ "$2" = "$3" ]; } || fail "kill needs two ranks, and as many hosts as ranks"
[ "$4" != random ] || { [ "$5" -eq "$5" ] && [ "$6" -ge 1 ]; } 2>/dev/null || fail "random: give numbers instead of $5 $6"
native=${built%/*}/classes/META-INF/native
export NCCL_NET_PLUGIN="${NCCL_NET_PLUGIN:-$native/linux-$(uname -m)/libnccl-net-millrace.so}"
# NCCL fails without this network. Otherwise it would use its own if the plugin cannot start.
[ "$NCCL_NET_PLUGIN" = none ] || export NCCL_NET="${NCCL_NET:-Millrace}" MILLRACE_TAKEOVER="${MILLRACE_TAKEOVER:-1}"
[ "${NCCL_NET-}" = Millrace ] || export MILLRACE_TAKEOVER=0
export MILLRACE_JAR="${MILLRACE_JAR:-${built%/*}/plugin-host/classes.jar}"
ranks=$2 hosts=$3; shift 3
directory=$(mktemp -d) || exit 2
export MILLRACE_TRACE_DIRECTORY="${MILLRACE_TRACE_DIRECTORY:-$directory}"
trap 'kill $started 2>/dev/null; rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM
started= rank=0 status=0
while [ "$rank" -lt "$ranks" ]; do
  NCCL_HOSTID="host$((rank % hosts))" "$built/ranks" "$directory/id" "$rank" "$ranks" "$@" &
  started="$started $!"
  rank=$((rank + 1))
done
for process in $started; do
  # The scenario kill ends the last rank by SIGKILL.
  wait "$process" || { [ "$? $1 $2 $process" = "137 life kill ${started##* }" ]; } || status=1
done
exit $status
