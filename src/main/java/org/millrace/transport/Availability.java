package org.millrace.transport;

/**
 * Whether something can be used, in a word and in words.
 *
 * @param text why not; or what there is to know about it
 */
public record Availability(boolean yes, String text) {

    /** It can be used. */
    public static Availability yes(String text) {
        return new Availability(true, text);
    }

    /**
     * It cannot be used.
     *
     * @param reason why, for people, as in {@code "other process 4711"}
     */
    public static Availability no(String reason) {
        return new Availability(false, reason);
    }
}
