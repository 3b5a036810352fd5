package org.millrace.engine.bootstrap;

import java.net.ProtocolException;
import java.util.HashMap;
import java.util.Map;
import org.millrace.engine.bootstrap.Message.Letter;

/**
 * Mailbox that have come and were not asked for yet: a rank may be told of a connection before it wants it.
 *
 * <p>
 * Not safe for several threads: {@link GroupState} guards it.
 */
final class Mailbox {

    /** A rank that writes so many that nobody asks for has lost its way. */
    private static final int LIMIT = 1 << 16;

    private record Address(int from, long tag) {
    }

    private final Map<Address, byte[]> waiting = new HashMap<>();

    void add(Letter letter) throws ProtocolException {
        if (letter.data().length > ControlPlane.MAX_LETTER_BYTES) {
            throw new ProtocolException("sent a letter of rank " + letter.from() + " with " + letter.data().length
                    + " bytes; the limit is " + ControlPlane.MAX_LETTER_BYTES);
        }
        if (waiting.size() == LIMIT
                || waiting.putIfAbsent(new Address(letter.from(), letter.tag()), letter.data()) != null) {
            throw new ProtocolException(
                    "sent a letter of rank " + letter.from() + " with tag " + Long.toHexString(letter.tag())
                            + (waiting.size() == LIMIT ? " while " + LIMIT + " others wait to be read"
                                    : " again, before the first was read"));
        }
    }

    byte[] take(int from, long tag) {
        return waiting.remove(new Address(from, tag));
    }
}
