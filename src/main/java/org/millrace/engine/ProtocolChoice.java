package org.millrace.engine;

import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.millrace.Operation;
import org.millrace.abi.Protocol;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Protocols that each operation may use. The chosen protocol is Simple, unless {@code NCCL_PROTO} forbids it. Sends and
 * receives ignore this choice.
 *
 * <p>
 * On CPU threads, Simple is the fastest protocol at each size. On a GPU, Simple needs a fence before the store of
 * {@code tail}, but LL and LL128 do not. On a CPU, the release store of {@code tail} costs nothing, but LL and LL128
 * have to pack and unpack lines. The table has the processor time of a float all-reduce on two ranks. One thread runs
 * the devices and the proxies, and copies data in place of a network. The first column is the number of bytes of a hop
 * from one rank to the next. Values are medians of nine interleaved rounds (two-core VM, JDK 25, a loaded machine):
 * <pre>
 *   bytes     LL        LL128     Simple
 *   8         1.8 us    2.0 us    1.5 us
 *   512       3.2 us    2.9 us    1.8 us
 *   4096      10.4 us   4.7 us    2.3 us
 *   65536     114 us    46 us     22 us
 *   262144    394 us    249 us    66 us
 * </pre> The following command repeats the measurement, for each network ({@code MILLRACE_NET}) and with as many ranks
 * as cores: <pre>
 *   for p in LL LL128 Simple; do NCCL_ALGO=ring NCCL_PROTO=$p millrace perf all_reduce -b 8 -e 1M -f 4 -r 2; done
 * </pre>
 *
 * @param allowed allowed protocols, by the operations' codes; sends and receives have the last entry
 */
record ProtocolChoice(List<Set<Protocol>> allowed) {

    private static final Set<Protocol> ALL = EnumSet.allOf(Protocol.class);
    private static final Map<String, Set<Protocol>> NAMES =
            Map.of("ll", Set.of(Protocol.LL), "ll128", Set.of(Protocol.LL128), "simple", Set.of(Protocol.SIMPLE));

    public static ProtocolChoice of(Configuration configuration) {
        return parse(configuration.get(Settings.PROTOCOLS).orElse("LL,LL128,Simple"));
    }

    /** @throws ConfigurationException if the text is invalid, or allows no protocol for a function */
    static ProtocolChoice parse(String text) {
        Map<String, Set<Protocol>> allowed =
                AlgorithmChoice.FunctionSections.parse(text, ALL, NAMES::get, "protocol", why -> refused(text, why));
        if (allowed.containsValue(Set.of())) {
            throw refused(text, "no protocol is left");
        }
        return new ProtocolChoice(List.copyOf(allowed.values()));
    }

    private static ConfigurationException refused(String text, String why) {
        return new ConfigurationException(Settings.PROTOCOLS.name() + "=" + text + ": " + why
                + ". Allowed: LL, LL128 and Simple with commas between, perhaps after ^ (all but these), perhaps "
                + "after a function (" + String.join(", ", AlgorithmChoice.FunctionSections.FUNCTIONS)
                + ") and a colon, several such with semicolons between");
    }

    /** Returns the protocol of an operation. The result is the same on all ranks. */
    public Protocol of(Operation operation) {
        Set<Protocol> left = operation.code() < allowed.size() ? allowed.get(operation.code()) : ALL;
        return left.contains(Protocol.SIMPLE) ? Protocol.SIMPLE
                : left.contains(Protocol.LL128) ? Protocol.LL128 : Protocol.LL;
    }

    /** Returns the choice as a text. Each rank compares its text with the texts of the other ranks. */
    String text() {
        return allowed.toString();
    }
}
