package org.millrace.net;

/**
 * Header of a frame: the payload's length and {@value #WORDS} words that the network carries without interpreting them.
 * A header object is reused for many frames.
 */
public final class FrameHeader {

    /** Number of words for the layer above the network. */
    public static final int WORDS = 6;

    private final long[] words = new long[WORDS];
    private long payloadBytes;

    /** Creates a header of zeros. */
    public FrameHeader() {}

    /** {@return the length of the frame's payload in bytes} */
    public long payloadBytes() {
        return payloadBytes;
    }

    /**
     * Sets the length of the frame's payload.
     *
     * @param bytes length in bytes, 0 or more
     */
    public void payloadBytes(long bytes) {
        payloadBytes = bytes;
    }

    /**
     * {@return one of the header's words, which the caller of the network has set}
     *
     * @param index index of the word, 0 to {@code WORDS - 1}
     */
    public long word(int index) {
        return words[index];
    }

    /**
     * Sets one of the header's words, which the network carries without interpreting it.
     *
     * @param index index of the word, 0 to {@code WORDS - 1}
     * @param value new value of the word
     */
    public void word(int index, long value) {
        words[index] = value;
    }

    /**
     * Copies the content of another header to this header.
     *
     * @param other header to copy from
     */
    public void set(FrameHeader other) {
        payloadBytes = other.payloadBytes;
        System.arraycopy(other.words, 0, words, 0, WORDS);
    }
}
