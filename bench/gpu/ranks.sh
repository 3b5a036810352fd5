# Runs two ranks of nccl_perf as two hosts. The scripts in this directory source this file. They set $here, $work (a
# directory) and $output (a directory for logs). NCCL_HOME is the directory of NCCL with its header, and CUDA_HOME of
# CUDA's runtime. The defaults are the nvidia.nccl package of python3 and /usr/local/cuda.

build_nccl() { # NAME: builds a program of this directory into $work
  local cuda=${CUDA_HOME:-/usr/local/cuda} nccl
  nccl=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
  gcc -O2 -I"$cuda/include" -I"$nccl/include" "$here/$1.c" -o "$work/$1" -L"$nccl/lib" -l:libnccl.so.2 -L"$cuda/lib64" -lcudart \
    -Wl,-rpath,"$nccl/lib" -Wl,-rpath,"$cuda/lib64"
}

# NAME: builds a program with kernels. NCCL's own backend for NICs includes DOCA's headers, which are rarely installed.
build_device() {
  local cuda=${CUDA_HOME:-/usr/local/cuda} nccl
  nccl=${NCCL_HOME:-$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])')}
  "$cuda/bin/nvcc" -O2 -std=c++17 -arch=native -DNCCL_GIN_GDAKI_ENABLE=0 -I"$nccl/include" "$here/$1.cu" -o "$work/$1" \
    -L"$nccl/lib" -l:libnccl.so.2 -Xlinker -rpath="$nccl/lib"
}

build_nccl_perf() { build_nccl nccl_perf; }

plugin_of() { # DIR: prints the plugin that is installed in DIR
  local plugin
  plugin=$(realpath -m "$1")/libnccl-net-millrace.so
  [ -e "$plugin" ] || { echo "there is no $plugin: run 'millrace plugin install $1' first" >&2; return 2; }
  echo "$plugin"
}

# LABEL ENVIRONMENT...: runs all-reduce (or $COLLECTIVE) from 8 B to 128 MiB, or of $SIZES. The output of the ranks is
# stored in $output/LABEL.RANK.log. NCCL_SET_THREAD_NAME makes NCCL name its threads. With a plugin NCCL fails without
# the plugin's network; otherwise it would use its own network if the plugin cannot start.
run() {
  local label=$1 rank ranks=() net=()
  shift
  case " $* " in *' NCCL_NET_PLUGIN=none '*) ;; *' NCCL_NET_PLUGIN='*) net=(NCCL_NET=Millrace) ;; esac
  rm -f "$work/id"
  for rank in 0 1; do
    env NCCL_HOSTID="host$rank" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-lo}" NCCL_SET_THREAD_NAME=1 "${net[@]}" "$@" \
      timeout -k 5 "${TIMEOUT:-120}" "$work/nccl_perf" "$rank" 2 "$work/id" "${COLLECTIVE:-all_reduce}" 8 134217728 "${ITERATIONS:-500}" "$label" \
      >"$output/$label.$rank.log" 2>&1 &
    ranks+=($!)
  done
  for rank in "${ranks[@]}"; do wait "$rank" || true; done # only these: a caller may have other background processes
  grep -q 'cpu rank' "$output/$label.0.log" || { echo "$label failed:"; tail -n 5 "$output/$label".?.log; } >&2
}

value() { awk -v size="$2" '$3 == size {print $4; exit}' "$output/$1.0.log"; } # LABEL BYTES: microseconds
