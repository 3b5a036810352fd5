package org.millrace.transport;

/**
 * Whether something can be used, with an explanation.
 *
 * @param text the reason if it cannot be used; otherwise further information
 */
public record Availability(boolean yes, String text) {

    /** Returns the availability of something that can be used. */
    public static Availability yes(String text) {
        return new Availability(true, text);
    }

    /**
     * Returns the availability of something that cannot be used.
     *
     * @param reason the reason, for people, as in {@code "other process 4711"}
     */
    public static Availability no(String reason) {
        return new Availability(false, reason);
    }
}
