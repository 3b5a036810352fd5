#!/usr/bin/env bash
# Measures the cost of accesses to memory shared with a GPU, and the latency of flags between GPU and host. Java and C
# alternate. This is the suite 'gpu' of the benchmarks and takes about 60 seconds.
#
#   bench/gpu/fences.sh JAVA JAR OUTDIR [OPTION...]
#
# JAVA is bin/java of a JDK or runtime image, version 22 or newer; the modules java.base and java.management are enough.
# JAR is bench/target/millrace-bench.jar. The script writes result.json, report.html and tables.md to OUTDIR. OPTIONs
# are options of the runner (--suite fences,gpu --forks 3).
#
# Requires a GPU and CUDA's runtime (libcudart.so.12 or .13; MILLRACE_CUDART_LIBRARY is its path if it is not found).
# The comparison with C requires a C compiler. nvcc is not required, because the kernels are included as PTX. Prints a
# short table at the end.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
java=$1 jar=$(realpath "$2") out=$3
shift 3
mkdir -p "$out"
status=0
timeout -k 5 "${FENCES_SECONDS:-85}" "$java" -jar "$jar" --quick --forks 1 --suite gpu --out "$out" --baselines "$out/baselines" "$@" \
  >"$out/log.txt" 2>&1 || status=$?
if [ ! -e "$out/tables.md" ]; then
  echo "no result, exit status $status (124: it took too long):" >&2
  tail -n 20 "$out/log.txt" >&2
  exit 1
fi
grep '^note:' "$out/log.txt" || true
grep -v '^note:' "$out/log.txt"
exit "$status"
