package org.millrace.engine.bootstrap;

import java.net.ProtocolException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.engine.bootstrap.Message.PeerMessage;

/**
 * Messages that have come and were not asked for yet: a rank may be told of a connection before it wants it.
 *
 * <p>
 * Not safe for several threads: {@link GroupState} guards it.
 */
final class Mailbox {

    /** More than a rank sends that is in order. */
    private static final int LIMIT = 1 << 16;

    private record Address(int from, long tag) {
    }

    private final Map<Address, byte[]> waiting = new HashMap<>();

    void add(PeerMessage message) throws ProtocolException {
        if (message.data().length > ControlPlane.MAX_MESSAGE_BYTES) {
            throw new ProtocolException("sent a message of rank " + message.from() + " with " + message.data().length
                    + " bytes; the limit is " + ControlPlane.MAX_MESSAGE_BYTES);
        }
        if (waiting.size() == LIMIT
                || waiting.putIfAbsent(new Address(message.from(), message.tag()), message.data()) != null) {
            throw new ProtocolException(
                    "sent a message of rank " + message.from() + " with tag " + Long.toHexString(message.tag())
                            + (waiting.size() == LIMIT ? " while " + LIMIT + " others wait to be read"
                                    : " again, before the first was read"));
        }
    }

    byte @Nullable [] take(int from, long tag) {
        return waiting.remove(new Address(from, tag));
    }
}
