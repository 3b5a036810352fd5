package org.millrace.net.connection;

import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Identifies the sender of a connection's first bytes if these bytes do not belong to the expected protocol. */
public final class ForeignProtocol {

    /** First bytes that a rank with TLS sends, see {@link ChallengeResponse}. */
    static final String TLS_RANK = "MLRCTLS1";
    private static final String JOINING = "MLRC";
    private static final String CONNECTING = "MILLRACE";
    /**
     * Minimum number of bytes that identify a sender with certainty. A random sequence of this length practically never
     * equals the first bytes of a known sender.
     */
    private static final int CERTAIN_BYTES = 5;
    private static final String CLIENT = "an HTTP client";

    /** Descriptions of senders. The key is the start of the first message that a sender sends. */
    private static final Map<String, String> SENDERS =
            Map.ofEntries(Map.entry(TLS_RANK, "a rank with MILLRACE_TLS=1, which must be set on all ranks or on none"),
                    Map.entry(JOINING, "a rank without TLS that joins a group"),
                    Map.entry(CONNECTING, "a rank without TLS that sends data"),
                    Map.entry("MILLNCCL", "a rank with MILLRACE_NET=plugin"),
                    Map.entry("MLRRESUM", "a rank that restores a lost stream"), Map.entry("HTTP/", "an HTTP server"),
                    Map.entry("GET ", CLIENT), Map.entry("POST ", CLIENT), Map.entry("HEAD ", CLIENT),
                    Map.entry("PUT ", CLIENT), Map.entry("SSH-2.0", "an SSH server or client"),
                    Map.entry("\26\3", "a TLS client"), Map.entry("\25\3", "a TLS server"));

    private ForeignProtocol() {}

    private static @Nullable String signature(ByteBuffer received) {
        String begin = HelloFormat.characters(received.duplicate().flip());
        return SENDERS.keySet()
                .stream()
                .filter(begin::startsWith)
                .max(Comparator.comparingInt(String::length))
                .orElse(null);
    }

    /** Returns the sender of the bytes before the position, such as {@code " (an HTTP server)"}; empty if unknown. */
    public static String suffix(ByteBuffer received) {
        String signature = signature(received);
        return signature == null ? "" : " (" + SENDERS.get(signature) + ")";
    }

    /** Returns whether the received bytes before the position certainly belong to a known protocol. */
    static boolean isCertain(ByteBuffer received) {
        String signature = signature(received);
        return signature != null && signature.length() >= CERTAIN_BYTES;
    }

    /** Returns whether the received bytes before the position are from a rank that does not use TLS. */
    static boolean isClearRank(ByteBuffer received) {
        String signature = signature(received);
        return JOINING.equals(signature) || CONNECTING.equals(signature);
    }
}
