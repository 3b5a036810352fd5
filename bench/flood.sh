#!/bin/bash
# Measures the effect of clients without the secret. They flood three kinds of ports: rank 0's control port while rank 1
# joins, both ranks' data ports while the ranks connect, and the plugin's port while it connects. The runs are in clear
# text and under TLS, with a heap of 256 MB. All traffic is on loopback, and each flood ends after a limited time.
#
#   bench/flood.sh [JAR]
#
# Prints a line for each run: the time in milliseconds, the peak memory of the flooded process in MB, and the flood. For
# the plugin it prints the time of the first connection and of the slowest of nine others. "FAILED" means that the run
# did not end in 60 s, or that anything was lost. FLOODS ("none hello-300 silent-1200 silent-5000 half-1200") and TLS
# ("0 1") select the runs.
#
# Requires target/millrace.jar (mvn package -DskipTests) or another JAR, a C compiler and ss. It takes five to ten
# minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
jar=$(realpath "${1:-target/millrace.jar}")
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
work=$(mktemp -d) || exit 1
trap 'exec 8>&- 9>&-; rm -rf "$work"' EXIT
ulimit -n "$(ulimit -Hn)"
export NCCL_SOCKET_IFNAME=lo MILLRACE_NET=socket MILLRACE_SECRET=of-the-benchmark MILLRACE_TAKEOVER=0
cc -std=gnu11 -O2 bench/flood/flood.c -o "$work/flood" \
  && cc -std=gnu11 -O2 -DNET_VERSION=12 -I headers -I src/test/c/plugin bench/flood/flood_host.c -o "$work/host" \
  && "$java" -jar "$jar" plugin install "$work/plugin" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

ports() { # PID...: prints the ports on which the processes listen
  for pid in "$@"; do ss -Htlnp | awk -v pid="pid=$pid," 'index($0, pid) {sub(/.*:/, "", $4); print $4}'; done | sort -u
}

await() { # FILE WORD: prints the number behind the word, as soon as a line has it
  for ((i = 0; i < 600; i++)); do
    value=$(sed -n "s/.*\b$2 \([0-9]*\).*/\1/p" "$1" | head -1)
    [ -n "$value" ] && { echo "$value"; return 0; }
    sleep 0.1
  done
  return 1
}

flood() { # KIND PORT...: starts a flood, and waits two seconds
  local kind count rate
  case $1 in
    none) return;;
    hello-300) kind=hello count=1 rate=300;;
    silent-*) kind=silent count=${1#silent-} rate=5000;;
    half-*) kind=half=$half count=${1#half-} rate=5000;;
  esac
  shift
  "$work/flood" "$kind" "$count" "$rate" 70 "$@" > "$work/flood.log" & flooder=$!
  sleep 2
}

begin_ranks() {
  port=$((20000 + RANDOM % 10000))
  rm -f "$work"/in? "$work"/out?
  for rank in 0 1; do
    mkfifo "$work/in$rank"
    timeout 120 "$java" -Xmx256m --enable-native-access=ALL-UNNAMED -cp "$jar" bench/flood/FloodRank.java \
      tcp:127.0.0.1:$port $rank < "$work/in$rank" > "$work/out$rank" 2> "$work/err$rank" & pid[rank]=$!
  done
  exec 8> "$work/in0" 9> "$work/in1"
  for ((i = 0; i < 600; i++)); do
    [ -n "$(ss -Htln "sport = $port")" ] && break
    kill -0 "${pid[0]}" 2> /dev/null || { cat "$work/out0" "$work/err0" >&2; exit 1; }
    sleep 0.1
  done
}

end_all() { # ends all processes, and prints the line of the measurement
  local flooded=-
  if [ -n "$flooder" ]; then
    kill "$flooder"
    wait "$flooder"
    flooded=$(cat "$work/flood.log")
  fi
  printf '%-16s %-6s %-12s %18s ms %6s MB  %s\n' "$1" "$([ "$2" = 1 ] && echo TLS || echo clear)" "$3" "$4" "$5" \
    "$flooded"
  exec 8>&- 9>&-
  [ ${#pid[@]} -gt 0 ] && kill "${pid[@]}" 2> /dev/null
  wait 2> /dev/null
  flooder= pid=()
}

flooder= pid=()
for tls in ${TLS:-0 1}; do
  export MILLRACE_TLS=$tls
  for kind in ${FLOODS:-none hello-300 silent-1200 silent-5000 half-1200}; do
    half=MLRCTLS10123456789abcdef; [ $tls = 1 ] || half=MLRC
    begin_ranks
    flood $kind $port
    echo >&9
    time=$(await "$work/out1" joined) || time=FAILED
    echo >&8; echo >&9
    peak=$(await "$work/out0" right) || { time=FAILED; peak=-; }
    end_all "engine control" $tls $kind "$time" "$peak"

    [ $tls = 1 ] || half=MILL
    begin_ranks
    echo >&9
    await "$work/out1" joined > /dev/null
    await "$work/out0" joined > /dev/null
    # shellcheck disable=SC2046
    flood $kind $(ports $(pgrep -P "${pid[0]}") $(pgrep -P "${pid[1]}"))
    echo >&8; echo >&9
    time=$(await "$work/out1" first) || time=FAILED
    peak=$(await "$work/out0" right) || { time=FAILED; peak=-; }
    end_all "engine data" $tls $kind "$time" "$peak"

    rm -f "$work"/in0; mkfifo "$work/in0"
    timeout 120 "$work/host" "$work/plugin/libnccl-net-millrace.so" 10 < "$work/in0" > "$work/out0" 2>&1 & pid=($!)
    exec 8> "$work/in0"
    for ((i = 0; i < 600; i++)); do grep -q '^ready' "$work/out0" && break; sleep 0.1; done
    # shellcheck disable=SC2046
    flood $kind $(ports $(pgrep -P "${pid[0]}"))
    echo >&8
    time=$(await "$work/out0" first) || time=FAILED
    peak=$(await "$work/out0" right) || { time=FAILED; peak=-; }
    end_all plugin $tls $kind "$time, $(await "$work/out0" slowest || echo FAILED)" "$peak"
  done
done
