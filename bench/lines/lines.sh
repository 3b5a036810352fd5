#!/usr/bin/env bash
# The engine between two hosts over slow interfaces and over long lines, beside iperf3: two network namespaces of this machine, no GPU.
#
#   bench/lines/lines.sh JAR      JAR: millrace.jar, beside its dependencies or with them
#
# RAILS: two interfaces of 1 Gbit/s each, then of 1 Gbit/s and 100 Mbit/s (tbf); CONNECTIONS: a line of 1 Gbit/s with 10 and 50 ms of delay each way
# (delay_line.c, so that netem is not required). BYTES (64 MiB) and OPERATIONS (4) may be set. PARTS ("rails delays") selects the parts. ENV (NAME=VALUE ...) adds
# settings for the ranks. Prints Mbit/s each way. Needs root, gcc, ip, tc, iperf3 and java 22 or newer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
jar=$(realpath "$1")
work=$(mktemp -d)
hosts=(millrace-line-a millrace-line-b)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
clean() {
  [ -z "${line:-}" ] || kill "$line" 2>/dev/null || true
  for host in "${hosts[@]}"; do ip netns del "$host" 2>/dev/null || true; done
}
trap 'clean; rm -rf "$work"' EXIT
gcc -O2 -Wall "$here/delay_line.c" -o "$work/delay_line"
"${java}c" -cp "$jar" -d "$work" "$here/Rate.java"

namespaces() {
  clean
  for host in "${hosts[@]}"; do ip netns add "$host"; ip -n "$host" link set lo up; done
}

interface() { # NUMBER RATE: one of both hosts
  ip link add name "eth$1" netns "${hosts[0]}" type veth peer name "eth$1" netns "${hosts[1]}"
  for i in 0 1; do
    ip -n "${hosts[i]}" address add "10.78.$1.$((i + 1))/24" dev "eth$1"
    ip -n "${hosts[i]}" link set "eth$1" up
    ip netns exec "${hosts[i]}" tc qdisc add dev "eth$1" root tbf rate "$2" burst 256k latency 20ms
  done
}

long_line() { # MILLISECONDS: each way; the queue holds what 1 Gbit/s brings in 200 ms
  "$work/delay_line" "${hosts[0]}" "${hosts[1]}" 1e9 "$(($1 * 1000))" 25e6 >"$work/ready" &
  line=$!
  until grep -q ready "$work/ready"; do sleep 0.05; done
  for i in 0 1; do
    ip -n "${hosts[i]}" address add "10.78.9.$((i + 1))" peer "10.78.9.$((2 - i))" dev line
    ip -n "${hosts[i]}" link set line mtu 9000 up
    ip netns exec "${hosts[i]}" sysctl -qw net.ipv4.tcp_rmem="4096 131072 67108864" net.ipv4.tcp_wmem="4096 65536 67108864"
  done
}

rate() { # LABEL ADDRESS_OF_RANK_0 KIND SETTING...
  local label=$1 address=$2 kind=$3 rank pids=()
  shift 3
  for rank in 0 1; do
    ip netns exec "${hosts[rank]}" env RANK=$rank WORLD_SIZE=2 MASTER_ADDR="$address" MASTER_PORT=47110 MILLRACE_SECRET=line MILLRACE_NET=socket NCCL_HOSTID=h$rank ${ENV:-} "$@" \
      timeout 120 "$java" --enable-native-access=ALL-UNNAMED -cp "$work:$jar" Rate "$kind" "${BYTES:-67108864}" "${OPERATIONS:-4}" >"$work/$rank.log" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1; do wait "${pids[rank]}" || { tail -n 3 "$work/$rank.log"; }; done
  awk -v label="$label" -v kind="$kind" '$1 == kind { printf "%-34s %-12s %8.0f\n", label, kind, $3 }' "$work/0.log"
}

iperf() { # LABEL ADDRESS STREAMS ONE_OR_BOTH_WAYS
  ip netns exec "${hosts[0]}" iperf3 -s -1 >/dev/null 2>&1 &
  sleep 0.3
  ip netns exec "${hosts[1]}" iperf3 -c "$2" -P "$3" -t 8 -O 3 $([ "$4" = both ] && echo --bidir) -J >"$work/iperf" || true
  python3 - "$1" "$3" "$4" "$work/iperf" <<'X'
import json, sys
end = json.load(open(sys.argv[4]))['end']
sums = [end[k]['bits_per_second'] / 1e6 for k in ('sum_received', 'sum_received_bidir_reverse') if k in end]
print(f"{sys.argv[1]:<34} {'iperf3, ' + sys.argv[2] + ', ' + sys.argv[3]:<20} {sum(sums) / len(sums):.0f}")
X
  wait $! 2>/dev/null || true
}

if [[ " ${PARTS:-rails delays} " == *" rails "* ]]; then
  for second in 1gbit 100mbit; do
    namespaces
    interface 0 1gbit
    interface 1 $second
    for kind in sendrecv all_reduce; do
      rate "one of 1gbit" 10.78.0.1 $kind NCCL_SOCKET_IFNAME=eth0
      rate "1gbit and $second" 10.78.0.1 $kind NCCL_SOCKET_IFNAME=eth0,eth1
    done
  done
fi
if [[ " ${PARTS:-rails delays} " == *" delays "* ]]; then
  for delay in 10 50; do
    namespaces
    long_line $delay
    for streams in 1 8; do
      iperf "$delay ms each way" 10.78.9.1 $streams one
      iperf "$delay ms each way" 10.78.9.1 $streams both
    done
    for kind in send sendrecv all_reduce; do
      rate "$delay ms each way" 10.78.9.1 $kind NCCL_SOCKET_IFNAME=line
      rate "$delay ms, NCCL_BUFFSIZE=32M" 10.78.9.1 $kind NCCL_SOCKET_IFNAME=line NCCL_BUFFSIZE=33554432
    done
    kill $line; wait $line 2>/dev/null || true; line=
  done
fi
