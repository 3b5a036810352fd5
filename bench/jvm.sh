#!/usr/bin/env bash
# Round trips between two processes, and all-reduces of float sums of two and four, on the same cores: Aeron IPC, the
# JDK's sockets, MPJ Express, Open MPI and Millrace. They alternate. JvmRank.java describes the measurement.
#
#   bench/jvm.sh JAVA JAR OUTDIR [OPTION...]
#
#   --rounds N      rounds, each one run of every library (default: 3)
#   --later N       seconds after which operations are measured again (default: 20; Open MPI: 2, it has no JIT)
#   --cores LIST    the cores that all processes share, as taskset has them (default: 0,1)
#   --mpi PROGRAM   bench/jvm/mpi.c, compiled (default: mpicc compiles the file)
#   --mpj PATH      class path of MPJ Express and of bench/jvm/MpjExpress.java, compiled (default: without MPJ Express)
#   --java OPTIONS  of all JVMs (default: "-XX:+UseSerialGC -Xmx2g")
#   --only PATTERN  the runs that match, for instance 'millrace.*4' (default: all of them)
#
# JAVA is bin/java of a JDK, version 22 or newer. JAR is bench/target/millrace-bench.jar. The script writes lines.tsv and
# tables.md to OUTDIR. It requires mpirun of Open MPI. The exit status is 1 if a run failed or an element was wrong.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 2; }
java=$1 jar=$(realpath "$2") out=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=3 later=20 cores=0,1 mpi= mpj= options="-XX:+UseSerialGC -Xmx2g" only=.
while [ $# -gt 0 ]; do
    case $1 in
        --rounds | --later | --cores | --mpi | --mpj | --only) declare "${1#--}=${2:?$1 needs a value}" ;;
        --java) options=${2?$1 needs a value} ;;
        *) echo "jvm.sh: unknown option '$1'; without arguments the script prints its usage" >&2; exit 2 ;;
    esac
    shift 2
done
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d -p /dev/shm) # Aeron's buffers are files
trap 'rm -rf "$work"' EXIT
if [ -z "$mpi" ]; then
    mpi=$work/mpi
    mpicc -O3 -Wall -Wextra -o "$mpi" "$here/jvm/mpi.c"
fi
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
limit=$((later + 90))
number=$(taskset -c "$cores" nproc)

# Each function writes the lines of every rank.

jvm() { # RANKS CLASS OPTION...
    local ranks=$1 class=$2 meeting rank pids=() status=0
    shift 2
    meeting=$(mktemp -d -p "$work")
    for ((rank = 0; rank < ranks; rank++)); do
        taskset -c "$cores" timeout "$limit" "$java" --enable-native-access=ALL-UNNAMED $options "$@" -cp "$jar${mpj:+:$mpj}" \
            org.millrace.bench.jvm.JvmRank "org.millrace.bench.jvm.$class" "$later" "$meeting" "$rank" "$ranks" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || status=$?
    done
    rm -r "$meeting"
    return $status
}

millrace() { # RANKS NET
    MILLRACE_DEVICE=host MILLRACE_NET=$2 jvm "$1" MillraceMessages
}

openmpi() { # RANKS BTL
    taskset -c "$cores" timeout "$limit" mpirun -np "$1" --oversubscribe --bind-to none --mca mpi_yield_when_idle $(($1 > number)) \
        --mca pml ob1 --mca btl "$2,self" "$mpi" 2
}

row() { # NAME RANKS COMMAND...
    local name=$1 ranks=$2
    shift 2
    [[ "$name $ranks" =~ $only ]] || return 0
    echo "round $round: $name, $ranks ranks" >&2
    "$@" >"$work/lines" 2>"$work/messages" || {
        echo "jvm.sh: $name with $ranks ranks failed with status $? (124: not complete after $limit s)" >&2
        cat "$work/lines" "$work/messages" >&2
        failed=1
        return 0
    }
    awk -v name="$name" -v ranks="$ranks" -v OFS='\t' -F '\t' '
        $1 == "time" { print name, ranks, $2, $3, $4, $5; times++ }
        $1 == "checked" { print name, ranks, $1, $2, $3, 0; seen++ }
        END { if (seen != ranks || !times) { print "jvm.sh: " seen + 0 " of " ranks " ranks of " name " have results" >"/dev/stderr"; exit 1 } }' \
        "$work/lines" >>"$out/lines.tsv" || failed=1
}

failed=0
: >"$out/lines.tsv"
for ((round = 1; round <= rounds; round++)); do
    row "Aeron IPC" 2 jvm 2 AeronMessages --add-opens java.base/jdk.internal.misc=ALL-UNNAMED -Dagrona.disable.bounds.checks=true
    row "NIO sockets, blocking" 2 jvm 2 SocketMessages
    row "NIO sockets, polled" 2 jvm 2 SocketMessages -Dpoll=true
    for ranks in 2 4; do
        [ -z "$mpj" ] || row "MPJ Express, TCP" $ranks jvm $ranks MpjExpress
        row "Open MPI, TCP" $ranks openmpi $ranks tcp
        row "Millrace, TCP" $ranks millrace $ranks socket
        row "Open MPI, shared memory" $ranks openmpi $ranks vader
        row "Millrace, shared memory" $ranks millrace $ranks auto
    done
done
echo "Cores $cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(uname -sr), $("$java" -version 2>&1 | sed -n 2p), $(mpirun --version | head -n 1)" | tee "$out/tables.md"
"$java" -jar "$jar" libraries "$out/lines.tsv" | tee -a "$out/tables.md"
exit $failed
