#!/usr/bin/env bash
# Shows C2's machine code of a method, compiled while a benchmark runs, on x86-64. Requires objdump, but no hsdis.
#
#   bench/disassemble.sh PACKAGE.CLASS::METHOD JMH-ARGUMENT...
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$java" -cp "$(dirname "$0")/target/millrace-bench.jar" org.openjdk.jmh.Main "${@:2}" -f 1 -wi 1 -i 1 -w 100ms -r 100ms \
  -jvmArgsPrepend "-XX:+UnlockDiagnosticVMOptions -XX:CompileCommand=quiet -XX:CompileCommand=print,$1" >"$out/log"
# The last listing, up to the exception handlers: lines of an address and groups of hexadecimal digits.
awk '/\[MachCode\]/ { code = ""; on = 1 }
     /\[Exception Handler\]|\[\/MachCode\]/ { on = 0 }
     on && /^ +0x[0-9a-f]+: [0-9a-f |]+$/ { sub(/^[^:]*: /, ""); gsub(/[ |]/, ""); code = code $0 }
     END { for (i = 1; i < length(code); i += 2) printf "\\x%s", substr(code, i, 2) }' "$out/log" >"$out/hex"
[ -s "$out/hex" ] || { echo "C2 did not compile $1" >&2; tail -n 20 "$out/log" >&2; exit 1; }
printf "$(cat "$out/hex")" >"$out/code"
objdump -D -b binary -m i386:x86-64 --no-show-raw-insn "$out/code"
