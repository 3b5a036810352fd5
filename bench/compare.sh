#!/usr/bin/env bash
# Runs benchmarks of two builds in turns and compares them: A B, B A, A B, ...
#
#   bench/compare.sh [-r ROUNDS] CLASSPATH_A CLASSPATH_B [JMH-ARGUMENT...]
#
# A class path is the millrace-bench.jar of a checkout, or an older library before this checkout's benchmarks:
#
#   bench/compare.sh OLD/target/millrace.jar:bench/target/millrace-bench.jar bench/target/millrace-bench.jar
#
# Each round has one JVM for each benchmark and build (default: 5 rounds). Without JMH's arguments it measures a proxy's
# step, a ring and frames over shared memory; a round takes about a minute. The last line names the directory with JMH's
# results.
set -euo pipefail
rounds=5
[ "${1-}" != -r ] || { rounds=$2; shift 2; }
[ $# -ge 2 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
a=$1 b=$2
shift 2
for part in ${a//:/ } ${b//:/ }; do [ -e "$part" ] || { echo "there is no $part" >&2; exit 2; }; done
[ $# -gt 0 ] || set -- 'ProxyStep|\.StepB|Frame' -p side=JAVA -p between=threads -p protocol=SIMPLE.0 \
  -p network=shm -p bytes=0,65536 -wi 3 -w 300ms -i 5 -r 300ms
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
out=$(mktemp -d)

measure() { # NAME CLASSPATH ROUND JMH-ARGUMENT...
  echo "round $3: $1" >&2
  "$java" -cp "$2" org.openjdk.jmh.Main -f 1 -v SILENT -rf json -rff "$out/$1-$3.json" "${@:4}" >"$out/$1-$3.txt" 2>&1 ||
    { tail -n 20 "$out/$1-$3.txt" >&2; exit 1; }
}

for ((round = 1; round <= rounds; round++)); do
  if ((round % 2)); then
    measure A "$a" "$round" "$@"
    measure B "$b" "$round" "$@"
  else
    measure B "$b" "$round" "$@"
    measure A "$a" "$round" "$@"
  fi
done
"$java" -jar "$(dirname "$0")/target/millrace-bench.jar" compare "$out"/A-*.json -- "$out"/B-*.json
echo "$out"
