package org.millrace.engine;

import org.millrace.abi.Protocol;

/**
 * Up to which size which protocol is the fastest, in bytes of data that one hop carries for a chunk: all of a
 * broadcast, one rank's part of an all-reduce.
 *
 * <p>
 * On CPU threads Simple is, at every size. LL and LL128 save a GPU the fence before tail; a CPU's release of tail costs
 * nothing, and lines have to be packed and unpacked. Processor time of a float all-reduce on two ranks, devices,
 * proxies and a copy for a network in one thread (two-core VM, JDK 25): <pre>
 *   bytes     LL        LL128     Simple
 *   8         1.6 us    2.1 us    1.6 us
 *   4096      12.5 us   5.0 us    2.2 us
 *   65536     151 us    45 us     13.8 us
 *   1048576   2715 us   791 us    235 us
 * </pre> To measure again, over each network ({@code MILLRACE_NET}) and with as many ranks as there are cores: <pre>
 *   for p in LL LL128 Simple; do NCCL_ALGO=ring NCCL_PROTO=$p millrace perf all_reduce -b 8 -e 1M -f 4 -r 2; done
 * </pre>
 *
 * @param ll    largest size for LL; -1 for none
 * @param ll128 largest size for LL128, where that is more; -1 for none
 */
record ProtocolThresholds(long ll, long ll128) {

    /** Between ranks of one host. */
    private static final ProtocolThresholds ONE_HOST = new ProtocolThresholds(-1, -1);
    /** Where some ranks are on other hosts. */
    private static final ProtocolThresholds HOSTS = new ProtocolThresholds(-1, -1);

    static ProtocolThresholds of(boolean oneHost) {
        return oneHost ? ONE_HOST : HOSTS;
    }

    Protocol best(long bytes) {
        return bytes <= ll ? Protocol.LL : bytes <= ll128 ? Protocol.LL128 : Protocol.SIMPLE;
    }
}
