#!/usr/bin/env bash
# All-reduce of floats between processes of this machine, alternately by Millrace and by Open MPI, in several rounds.
# `compare.sh --help` prints the usage. ../README.md describes the measurement and the sources of noise.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
    cat <<'HELP'
Usage: bench/openmpi/compare.sh [options]

  --rounds N        rounds, each one run of either side (default: 5)
  --quick           3 rounds of every second size, 16 B to 64 MiB (default: 8 B to 64 MiB, factor 2)
  -b, -e, -f        smallest size, largest size, factor, as `millrace perf` has them
  -r, --ranks N     processes (default: 2)
  --net socket|shm  both sides over TCP, or both over shared memory, ours by its SHM transport (default: socket)
  --bind HOW        mpirun's --bind-to: default (a core each for 2 processes), none, core, ... (default: default)
  --jar FILE        Millrace's command line (default: target/millrace.jar)
  --json FILE       write the results there too
  --keep DIR        keep what each run wrote in this directory

Variables NCCL_* and MILLRACE_* are passed on to Millrace, OMPI_MCA_* to Open MPI.
Exit status: 0, 1 if a run failed or a result was wrong, 2 if something is missing.
HELP
}

fail() {
    echo "compare.sh: $2" >&2
    exit "$1"
}

rounds=
quick=false
min= max= factor=
ranks=2
net=socket
bind=default
jar=$root/target/millrace.jar
json=
keep=

while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=true; shift; continue ;;
        -h | --help) usage; exit 0 ;;
        --rounds | -b | -e | -f | -r | --ranks | --net | --bind | --jar | --json | --keep)
            [ $# -ge 2 ] || fail 2 "$1 needs a value; see --help" ;;
        *) fail 2 "unknown option '$1'; see --help" ;;
    esac
    case $1 in
        --rounds) rounds=$2 ;;
        -b) min=$2 ;;
        -e) max=$2 ;;
        -f) factor=$2 ;;
        -r | --ranks) ranks=$2 ;;
        --net) net=$2 ;;
        --bind) bind=$2 ;;
        --jar) jar=$2 ;;
        --json) json=$2 ;;
        --keep) keep=$2 ;;
    esac
    shift 2
done
if $quick; then
    rounds=${rounds:-3} min=${min:-16} factor=${factor:-4}
fi
rounds=${rounds:-5} min=${min:-8} max=${max:-64M} factor=${factor:-2}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || fail 2 "--rounds $rounds: a number from 1 is needed"
[[ $ranks =~ ^[1-9][0-9]*$ && $ranks -ge 2 ]] || fail 2 "--ranks $ranks: a number from 2 is needed"
case $net in
    socket) transports=tcp,self ours=socket ;;
    shm) transports=vader,self ours=auto ;;
    *) fail 2 "--net $net: allowed are socket and shm" ;;
esac

# Requirements.

java_release() {
    "$1" -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p'
}

find_java() {
    local candidate
    for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java /opt/*jdk*/bin/java; do
        if [ -n "$candidate" ] && [ -x "$candidate" ] && [ "$(java_release "$candidate")" -ge 22 ] 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

java=$(find_java) || fail 2 "no JDK 22 or newer: neither in JAVA_HOME, nor on the PATH, nor in /usr/lib/jvm. Install one, or set JAVA_HOME"
[ -f "$jar" ] || fail 2 "there is no $jar: run 'mvn -DskipTests package' in $root, or name one with --jar"
for command in mpicc mpirun; do
    command -v "$command" >/dev/null || fail 2 "there is no $command: install Open MPI (Debian, Ubuntu: apt-get install openmpi-bin libopenmpi-dev)"
done
case $(mpirun --version 2>/dev/null) in
    *"Open MPI"*) ;;
    *) fail 2 "$(command -v mpirun) is not Open MPI's: put Open MPI's bin directory first in PATH" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc -O3 -Wall -Wextra -o "$work/allreduce" "$here/allreduce.c" || fail 2 "mpicc cannot compile $here/allreduce.c"

# One run of either side.

millrace() {
    "$java" -jar "$jar" perf all_reduce --processes --net "$ours" -r "$ranks" -b "$min" -e "$max" -f "$factor" --deadline 3m --json "$work/$1.millrace.json" \
        >"$work/$1.millrace.txt" 2>&1 || fail 1 "Millrace failed in round $1: $(tail -n 20 "$work/$1.millrace.txt")"
}

mpi_options=(-np "$ranks" --timeout 180 --mca pml ob1 --mca btl "$transports")
[ "$bind" = default ] || mpi_options+=(--bind-to "$bind")
[ "$ranks" -le "$(nproc)" ] || mpi_options+=(--oversubscribe)
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

openmpi() {
    mpirun "${mpi_options[@]}" "$work/allreduce" "$work/plan.txt" >"$work/$1.openmpi.tsv" 2>"$work/$1.openmpi.txt" \
        || fail 1 "Open MPI failed in round $1: $(tail -n 20 "$work/$1.openmpi.txt")"
}

report() {
    "$java" "$here/CompareReport.java" "$@"
}

fact() {
    printf '%s\t%s\n' "$1" "$2" >>"$work/facts.tsv"
}

fact processor "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
fact cores "$(nproc)"
fact kernel "$(uname -srm)"
fact jdk "$("$java" -version 2>&1 | sed -n 2p)"
fact openmpi "$(mpirun --version | head -n 1)"
fact millrace "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
fact ranks "$ranks"
fact net "$net"
fact mpirun "${mpi_options[*]}"
tcp() { tr '\t' ' ' <"/proc/sys/net/ipv4/tcp_$1" 2>/dev/null; }
fact tcp "congestion control $(tcp congestion_control), wmem $(tcp wmem), rmem $(tcp rmem)"
fact settings "$(env | grep -E '^(NCCL_|MILLRACE_|OMPI_MCA_|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS)' | grep -v SECRET | sort | tr '\n' ' ' || true)"
fact load_before "$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null)"

for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds: Millrace ..." >&2
    millrace "$round"
    [ "$round" -gt 1 ] || report plan "$work/1.millrace.json" >"$work/plan.txt"
    echo "round $round of $rounds: Open MPI ..." >&2
    openmpi "$round"
done
fact load_after "$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null)"

if [ -n "$keep" ]; then
    mkdir -p "$keep"
    cp "$work"/*.json "$work"/*.tsv "$work"/*.txt "$keep"
fi
report table "$work" "$rounds" ${json:+"$json"}
