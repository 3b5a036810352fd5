package org.millrace.net.shm.handshake;

import java.nio.ByteBuffer;

/** What a listener answers to a hello, as one byte; its number is its place here: add new ones at the end. */
enum ShmHandshakeReply {

    /** The ring is mapped: frames may follow. */
    ACCEPTED("it accepted"),
    /** The hello was of another version. */
    OTHER_VERSION("it speaks another version of the protocol: use the same Millrace in all processes"),
    /** The hello's secret is not this listener's. */
    WRONG_SECRET("it does not know the secret in the address: the address is another listener's, or damaged"),
    /** Nobody expected this key in time. */
    UNKNOWN_KEY(
            "it expects no connection with this key: the two sides disagree on who connects to whom, or the accepting side is not there yet"),
    /** Another client has this key. */
    KEY_TAKEN("the key is taken: another client connected with it, or the accepting side gave it up"),
    /** The ring cannot be mapped. */
    NO_RING("it cannot map the ring: see its log");

    private static final ShmHandshakeReply[] BY_NUMBER = values();

    private final String text;

    ShmHandshakeReply(String text) {
        this.text = text;
    }

    /** Why, as a peer is told: "it ...". */
    String text() {
        return text;
    }

    ByteBuffer encode() {
        return ByteBuffer.allocate(1).put(0, (byte) ordinal());
    }

    /** The answer in a byte; null if it is one of a later version's. */
    static ShmHandshakeReply decode(byte number) {
        return number >= 0 && number < BY_NUMBER.length ? BY_NUMBER[number] : null;
    }
}
