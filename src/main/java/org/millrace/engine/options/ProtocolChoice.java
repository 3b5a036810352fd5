package org.millrace.engine.options;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.IntStream;
import org.millrace.Operation;
import org.millrace.abi.Protocol;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Which protocol an operation's data travels in. {@code NCCL_PROTO} is read as NCCL reads it: names with commas
 * between, after {@code ^} those that are not wanted; sections with semicolons between, each for the function that it
 * begins with, or for all. Sends and receives do not look at it.
 *
 * @param allowed    what may be used, by the operations' codes
 * @param thresholds which is best, where several may
 */
public record ProtocolChoice(List<Set<Protocol>> allowed, ProtocolThresholds thresholds) {

    /** By {@linkplain Operation#code() code}; sends and receives come behind. */
    private static final List<String> FUNCTIONS = IntStream.range(0, Operation.SEND_RECEIVE.code())
            .mapToObj(code -> Operation.ofCode(code).ncclName().toLowerCase(Locale.ROOT))
            .toList();

    public static ProtocolChoice of(Configuration configuration, boolean oneHost) {
        return parse(configuration.get(Settings.PROTOCOLS).orElse("LL,LL128,Simple"), ProtocolThresholds.of(oneHost));
    }

    /** @throws ConfigurationException if the text is not understood, or leaves a function without any */
    static ProtocolChoice parse(String text, ProtocolThresholds thresholds) {
        List<Set<Protocol>> allowed =
                new ArrayList<>(Collections.nCopies(FUNCTIONS.size(), EnumSet.allOf(Protocol.class)));
        for (String section : text.toLowerCase(Locale.ROOT).split(";")) {
            int colon = section.indexOf(':');
            Set<Protocol> named = protocols(text, section.substring(colon + 1).strip());
            if (colon < 0) {
                Collections.fill(allowed, named);
            } else {
                int function = FUNCTIONS.indexOf(section.substring(0, colon).strip());
                if (function < 0) {
                    throw refused(text, "there is no function " + section.substring(0, colon).strip());
                }
                allowed.set(function, named);
            }
        }
        return new ProtocolChoice(List.copyOf(allowed), thresholds);
    }

    private static Set<Protocol> protocols(String text, String names) {
        boolean excluded = names.startsWith("^");
        EnumSet<Protocol> protocols = EnumSet.noneOf(Protocol.class);
        for (String name : (excluded ? names.substring(1) : names).split(",")) {
            protocols.add(switch (name.strip()) {
                case "ll" -> Protocol.LL;
                case "ll128" -> Protocol.LL128;
                case "simple" -> Protocol.SIMPLE;
                default -> throw refused(text, "there is no protocol " + name.strip());
            });
        }
        EnumSet<Protocol> meant = excluded ? EnumSet.complementOf(protocols) : protocols;
        if (meant.isEmpty()) {
            throw refused(text, "no protocol is left");
        }
        return meant;
    }

    private static ConfigurationException refused(String text, String why) {
        return new ConfigurationException(Settings.PROTOCOLS.name() + "=" + text + ": " + why
                + ". Allowed: LL, LL128 and Simple with commas between, perhaps after ^ (all but these), perhaps "
                + "after a function (" + String.join(", ", FUNCTIONS)
                + ") and a colon, several such with semicolons between");
    }

    /**
     * The protocol of an operation. All ranks say the same.
     *
     * @param bytes of data that one hop carries for a chunk
     */
    public Protocol of(Operation operation, long bytes) {
        int function = operation.code();
        Protocol best = thresholds.best(bytes);
        if (function >= allowed.size() || allowed.get(function).contains(best)) {
            return best;
        }
        // NCCL's order of latency; where neither of the faster is wanted the larger serves
        Set<Protocol> left = allowed.get(function);
        return left.contains(Protocol.LL128) && best != Protocol.SIMPLE ? Protocol.LL128
                : left.contains(Protocol.SIMPLE) ? Protocol.SIMPLE
                        : left.contains(Protocol.LL128) ? Protocol.LL128 : Protocol.LL;
    }

    /** For comparing with the other ranks'. */
    String text() {
        return allowed.toString();
    }

    /**
     * Up to which size which protocol is the fastest, in bytes of data that one hop carries for a chunk: all of a
     * broadcast, one rank's part of an all-reduce.
     *
     * <p>
     * On CPU threads Simple is, at every size. LL and LL128 save a GPU the fence before tail; a CPU's release of tail
     * costs nothing, and lines have to be packed and unpacked. Processor time of a float all-reduce on two ranks,
     * devices, proxies and a copy for a network in one thread: medians of nine rounds in turns, lines by address
     * (two-core VM, JDK 25, a loaded machine, of which processor time says less than a clock would): <pre>
     *   bytes     LL        LL128     Simple
     *   8         1.8 us    2.0 us    1.5 us
     *   64        2.3 us    2.9 us    1.7 us
     *   512       3.2 us    2.9 us    1.8 us
     *   4096      10.4 us   4.7 us    2.3 us
     *   16384     30.0 us   13.1 us   4.9 us
     *   65536     114 us    46 us     22 us
     *   262144    394 us    249 us    66 us
     * </pre> To measure again, over each network ({@code MILLRACE_NET}) and with as many ranks as there are cores:
     * <pre>
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
}
