#!/usr/bin/env bash
# Checks and measures GIN between GPUs of one host, which NCCL takes for several hosts (NCCL_HOSTID). The kernels use
# NCCL's unmodified device API, and this plugin serves its queues.
#
#   bench/gpu/gin.sh DIR [OUTPUT]
#
# DIR is the directory of `millrace plugin install DIR`. OUTPUT is the directory for logs (default: a temporary
# directory).
#
# By default bytes travel from GPU to GPU. MILLRACE_GIN_DIRECT=0 stages them in memory that the ranks share. With
# MILLRACE_GIN_SHARED=0 as well, the bytes travel over the network. A kernel makes small copies; with
# MILLRACE_GIN_COPY_KERNEL=0 the copy engines make all copies. Beside its results each run prints the number of
# descriptors that Java served in each context. It also prints the number of NCCL's GIN progress threads, which should
# be 0.
#
# The same puts, and puts of every rank to each rank, are measured from a Java program that serves its own queues
# (GinOnGpus.java, with the kernels of gin_java.cu). JAVA is the java of a JDK 22 or newer (default: java); without one
# this part is left out.
#
# Then the script dispatches tokens to experts and combines the results, as DeepEP does (nccl_expert.cu). It does so for
# every number of ranks in EXPERT_RANKS (2 4), if the host has enough GPUs.
#
# GIN_C=1 also runs nccl_gin over gin_c.c. This plugin does the same work in C for NCCL 2.28, with one spinning thread.
# It stages bytes piece by piece in memory that the ranks share. After Java's run on every network, four variants take
# turns, with two runs each: C, Java staged, Java by copy engines, and Java staged by copy engines. A table shows all
# their round trips.
#
# RANKS (2), RANKS_PER_HOST (1), MAX_BYTES (64 MiB), ITERATIONS (400), TOKENS (1000000) and LIMIT (90 s for each run)
# may be set. SEED is random by default, and the script prints it. Ranks without their own GPU share one, in time slices
# of milliseconds. Their checks are valid, but their times are not. GPUS overrides the number of GPUs. Requires nvcc,
# and NCCL 2.28 or newer with its headers. NCCL_HOME and CUDA_HOME are their directories. The defaults are the
# nvidia.nccl package of python3 and /usr/local/cuda. Exit status 1 if a run did not end or found wrong bytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,32s/^# \{0,1\}//p' "$0"; exit 2; }
. "$here/ranks.sh"
plugin=$(plugin_of "$1")
output=${2:-$(mktemp -d)}
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
NCCL_HOME=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}

# LABEL RANKS RESULTS PROGRAM ARGUMENTS...: runs a process for each rank. NCCL logs the plugin's messages, and names its
# threads. RESULTS selects the lines of rank 0 to print.
run() {
  local label=$1 ranks=$2 results=$3 program=$4 rank pids=() pid bad=0
  shift 4
  rm -f "$work/id"
  for ((rank = 0; rank < ranks; rank++)); do
    env NCCL_HOSTID="host$((rank / ${RANKS_PER_HOST:-1}))" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_NET_PLUGIN="$plugin" NCCL_NET=Millrace MILLRACE_NET="$network" \
      NCCL_SET_THREAD_NAME=1 NCCL_DEBUG="${NCCL_DEBUG:-INFO}" NCCL_DEBUG_SUBSYS="${NCCL_DEBUG_SUBSYS:-NET}" \
      timeout -k 5 "${LIMIT:-90}" "$work/$program" "$rank" "$ranks" "$work/id" "$@" >"$output/$label.$rank.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
  echo "== $label"
  grep -hE "$results" "$output/$label.0.log" || true
  grep -h '^rank .* wrong ' "$output/$label".?.log || bad=1
  [ $bad = 0 ] || { status=1; echo "failed:"; tail -n 5 "$output/$label".?.log; }
  grep -hoE 'GIN: rank .*, context .*: descriptors served by (Java|C): .*' "$output/$label".?.log || echo "nothing says that a descriptor was served"
  grep -hoE "GIN: rank .*, copies by the GPU's engines: .*" "$output/$label".?.log || true # no such line if all memory is host memory
  grep -hE '^rank .*threads' "$output/$label".?.log || true
}

build_gin_java() { # the kernels, and a program that starts a rank
  "$CUDA_HOME/bin/nvcc" -cubin -O2 -std=c++17 -arch=native -DNCCL_GIN_GDAKI_ENABLE=0 -I"$NCCL_HOME/include" "$here/gin_java.cu" -o "$work/gin_java.cubin"
  cat >"$work/gin_java" <<RANK
#!/usr/bin/env bash
export CUDA_MODULE_LOADING=EAGER MILLRACE_NCCL_LIBRARY="$NCCL_HOME/lib/libnccl.so.2" LD_LIBRARY_PATH="$CUDA_HOME/lib64:\${LD_LIBRARY_PATH:-}"
exec "$java" --enable-native-access=ALL-UNNAMED -cp "${plugin%/*}/millrace.jar" "$here/../../src/examples/java/com/example/millrace/GinOnGpus.java" \
  "\$1" "\$2" "\$3" "$work/gin_java.cubin" "\$4" "\$5"
RANK
  chmod +x "$work/gin_java"
}

build_gin_c() {
  gcc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -I"$here/../../headers" -I"$CUDA_HOME/include" "$here/gin_c.c" \
    -o "$work/libnccl-net-gin-c.so" -L"$CUDA_HOME/lib64" -lcudart -lpthread -lrt -Wl,-z,nodelete -Wl,-rpath,"$CUDA_HOME/lib64"
}

nccl_gin() { # LABEL
  run "$1" "${RANKS:-2}" '^([0-9]+ ranks,|put |values|signals |flood |round trip|flush |delay |VA signal|get )' \
    nccl_gin "${MAX_BYTES:-67108864}" "${ITERATIONS:-400}"
}

beside() { # LABEL...: prints the round trips of the labels side by side
  local label
  echo "== round trips in us"
  for label; do
    sed -n "s/^round trip, *\([0-9]*\) B + signal: *\([0-9.]*\) us.*/\1 $label \2/p" "$output/$label.0.log"
  done | awk -v labels="$*" '
    BEGIN { n = split(labels, label, " "); printf "%10s", "B"; for (i = 1; i <= n; i++) printf " %21s", label[i]; print "" }
    !seen[$1]++ { sizes[++m] = $1 }
    { us[$1, $2] = $3 }
    END { for (r = 1; r <= m; r++) { printf "%10d", sizes[r]; for (i = 1; i <= n; i++) printf " %21s", us[sizes[r], label[i]]; print "" } }'
}

compare_with_c() { # compares with nccl_gin's run of $network
  local turn version labels=()
  version=$(awk '$2 == "NCCL_MAJOR" || $2 == "NCCL_MINOR" {printf "%s%s", dot, $3; dot = "."}' "$NCCL_HOME/include/nccl.h")
  if [ "$version" != 2.28 ]; then
    echo "== gin_c not run: it serves NCCL 2.28, and here is $version"
    return
  fi
  for turn in 1 2; do
    plugin=$work/libnccl-net-gin-c.so nccl_gin "c_${network}_$turn"
    MILLRACE_GIN_DIRECT=0 nccl_gin "staged_${network}_$turn"
    MILLRACE_GIN_COPY_KERNEL=0 nccl_gin "engines_${network}_$turn"
    MILLRACE_GIN_DIRECT=0 MILLRACE_GIN_COPY_KERNEL=0 nccl_gin "staged_engines_${network}_$turn"
  done
  for turn in 1 2; do
    labels+=("engines_${network}_$turn" "c_${network}_$turn" "staged_${network}_$turn" "staged_engines_${network}_$turn")
  done
  beside "gin_$network" "${labels[@]}"
}

status=0
build_device nccl_gin
build_device nccl_expert
java=${JAVA:-$(command -v java || true)}
if [ -n "$java" ]; then
  build_gin_java
else
  echo "== gin_java not run: there is no java"
fi
if [ "${GIN_C:-0}" = 1 ]; then
  build_gin_c
fi
gpus=${GPUS:-$(nvidia-smi -L | wc -l)}
seed=${SEED:-$RANDOM$RANDOM}
# Kernels with headers of NCCL 2.29 also signal in windows, and with headers of 2.30 also get. Older headers omit these
# lines.
for network in ${NETWORKS:-shm socket}; do
  nccl_gin "gin_$network"
  if [ -n "$java" ]; then
    run "gin_java_$network" "${RANKS:-2}" ' of Java,' gin_java "${MAX_BYTES:-67108864}" "${ITERATIONS:-400}"
  fi
  if [ "${GIN_C:-0}" = 1 ]; then
    compare_with_c
  fi
  for ranks in ${EXPERT_RANKS:-2 4}; do
    if [ "$ranks" -le "$gpus" ]; then
      run "expert_${network}_$ranks" "$ranks" '^expert' nccl_expert "${TOKENS:-1000000}" "$seed"
    else
      echo "== expert_${network}_$ranks not run: it needs $ranks GPUs, and here are $gpus"
    fi
  done
done
echo "logs: $output"
exit $status
