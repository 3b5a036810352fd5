#!/usr/bin/env bash
# What accesses to memory shared with a GPU cost, and how long flags take between GPU and host, Java and C in turns: the suite 'gpu' of the benchmarks, in some
# 60 seconds.
#
#   bench/gpu/fences.sh JAVA JAR OUTDIR [OPTION...]
#
# JAVA: a JDK's or runtime image's bin/java, 22 or newer (modules java.base and java.management are enough). JAR: bench/target/millrace-bench.jar. OUTDIR: gets
# result.json, report.html and tables.md. OPTIONs are the runner's (--suite fences,gpu --forks 3). Needs a GPU, CUDA's runtime (libcudart.so.12 or .13;
# MILLRACE_CUDART_LIBRARY says where if it is not found), and for the comparison with C a C compiler. No nvcc: the kernels travel as PTX. Prints a short table
# last.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
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
