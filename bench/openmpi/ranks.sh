#!/usr/bin/env bash
# More ranks than cores: joining, all-reduces of 8 B and 1 MiB, threads and memory. Millrace and Open MPI alternate on
# the same cores. `ranks.sh --help` prints the usage. Ranks.java describes the measurement.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
    cat <<'HELP'
Usage: bench/openmpi/ranks.sh [options]

  --ranks LIST    numbers of ranks, blanks between (default: "2 4 8 16 32")
  --nets LIST     of shm and tcp (default: "shm tcp")
  --as LIST       of processes and threads, which Open MPI has none of (default: "processes threads")
  --cores LIST    the cores they share, as taskset has them (default: 0,1)
  --later N       seconds after joining at which it is measured again (default: 10)
  --rounds N      each all of the above (default: 1)
  --java OPTIONS  of Millrace's JVMs (default: "-XX:+UseSerialGC -Xms16m", which java.md tells users)
  --cache         start those with a cache of classes, as millrace run does
  --jar FILE      Millrace's command line (default: target/millrace.jar)

A line takes as long as joining, --later and 3 s on either side. JAVA_HOME is a JDK 22 or newer; mpicc and mpirun are Open MPI's.
HELP
}

ranks="2 4 8 16 32" nets="shm tcp" as="processes threads" cores=0,1 later=10 rounds=1 options="-XX:+UseSerialGC -Xms16m" cache= jar=$here/../../target/millrace.jar
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --cache) cache=1; shift; continue ;;
        --ranks | --nets | --as | --cores | --later | --rounds | --jar)
            declare "${1#--}=${2:?$1 needs a value}" ;;
        --java) options=${2?$1 needs a value} ;;
        *) echo "ranks.sh: unknown option '$1'; see --help" >&2; exit 2 ;;
    esac
    shift 2
done
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
jar=$(realpath "$jar")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${java}c" --release 22 -cp "$jar" -d "$work" "$here/Ranks.java"
if [ "$cache" ]; then
    options+=" -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    "${java}" --enable-native-access=ALL-UNNAMED $options -XX:AOTCacheOutput="$work/ranks.aot" -cp "$jar" org.millrace.engine.JoinTraining >"$work/messages" 2>&1
    options+=" -XX:AOTCache=$work/ranks.aot -Xlog:aot*=off"
fi
mpicc -O3 -Wall -Wextra -o "$work/ranks" "$here/ranks.c"
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Each function writes a line for every rank.

millrace() { # RANKS shm|tcp processes|threads
    local command=(taskset -c "$cores" env "START=$(date +%s%N)" "$java" --enable-native-access=ALL-UNNAMED $options -cp "$jar:$work" Ranks "$later")
    export MILLRACE_DEVICE=host MILLRACE_NET=${2/shm/auto}
    MILLRACE_NET=${MILLRACE_NET/tcp/socket}
    if [ "$3" = threads ]; then
        "${command[@]}" threads "$1"
        return
    fi
    local meeting pids=() rank
    meeting=file:$(mktemp -u "$work/meetingXXXX")
    for ((rank = 0; rank < $1; rank++)); do
        "${command[@]}" "$meeting" "$rank" "$1" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank"
    done
}

openmpi() { # RANKS shm|tcp
    local btl=${2/shm/vader}
    START=$(date +%s%N) taskset -c "$cores" mpirun -np "$1" --oversubscribe --bind-to none --mca pml ob1 --mca btl "$btl,self" "$work/ranks" "$later"
}

row() { # NAME RANKS NET AS: of all ranks the slowest, and the largest
    local output
    output=$("$@" 2>"$work/messages") || { cat "$work/messages" >&2; echo "ranks.sh: $* failed" >&2; exit 1; }
    awk -v name="$1" -v ranks="$2" -v net="$3" -v as="${4:-processes}" '
        $1 == "rank" { for (i = 2; i <= NF; i++) if ($i > most[i]) most[i] = $i; lines++ }
        END {
            if (lines != ranks) { print "ranks.sh: " lines + 0 " of " ranks " ranks told their figures" >"/dev/stderr"; exit 1 }
            if (as == "threads") for (i = 8; i <= 10; i++) most[i] /= ranks
            printf "%-5s %-3s %-9s %-8s %6.2f %8.1f %8.0f %8.1f %8.1f %8.0f %7.0f %5.0f %5.0f\n", ranks, net, as, name,
                most[2], most[3], most[4], most[5], most[6], most[7], most[8], most[9], most[10]
        }' <<<"$output" | tee -a "$work/table"
}

for ((round = 1; round <= rounds; round++)); do
    for number in $ranks; do
        for net in $nets; do
            for kind in $as; do
                row millrace "$number" "$net" "$kind"
            done
            row openmpi "$number" "$net"
        done
    done
done >&2
echo "The slowest rank: seconds until it had joined; us an operation at first, and $later s later; threads and MB a rank. Cores $cores of: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
echo "ranks net as        with       join  8B first 1M first      8B 8B waited    1M threads   RSS   PSS"
cat "$work/table"
