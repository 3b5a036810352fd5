#!/usr/bin/env bash
# Measures accesses to memory shared with a GPU, flags between GPU and host, and copies. Java and C run in JVMs of their
# own. The script takes about six minutes.
#
#   bench/gpu/fences.sh JAVA JAR OUTDIR [JMH-OPTION...]
#
# JAVA is bin/java of a JDK, version 22 or newer. JAR is bench/target/millrace-bench.jar. The script writes JMH's results
# and tables.md to OUTDIR. Options of JMH replace those of the benchmarks (default: -f 1, one JVM for each line).
#
# Requires a GPU and CUDA's runtime (libcudart.so.12 or .13; MILLRACE_CUDART_LIBRARY is its path if it is not found).
# The comparison with C requires a C compiler. nvcc is not required, because the kernels are included as PTX.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
java=$1 jar=$(realpath "$2") out=$3
shift 3
[ $# -gt 0 ] || set -- -f 1
mkdir -p "$out"
measure() { # NAME JMH-ARGUMENT...
  "$java" -jar "$jar" jmh "${@:2}" -rf json -rff "$out/$1.json" >"$out/$1.txt" 2>&1 ||
    { echo "no result:" >&2; tail -n 20 "$out/$1.txt" >&2; exit 1; }
}
measure pinned AccessBenchmark -p memory=pinned "$@"
measure polled ContendedBenchmark -p memory=pinned -p other=polled "$@"
measure flags Gpu "$@"
"$java" -jar "$jar" tables "$out"/{pinned,polled,flags}.json | tee "$out/tables.md"
