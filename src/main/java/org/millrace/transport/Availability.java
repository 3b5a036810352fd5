package org.millrace.transport;

/**
 * Whether a transport can be used, with an explanation.
 *
 * @param yes  whether the transport can be used
 * @param text the reason if the transport cannot be used; otherwise further information
 */
public record Availability(boolean yes, String text) {

    /** Returns the availability of a transport that can be used. */
    public static Availability yes(String text) {
        return new Availability(true, text);
    }

    /**
     * Returns the availability of a transport that cannot be used.
     *
     * @param reason the reason, for people, for instance {@code "other process 4711"}
     */
    public static Availability no(String reason) {
        return new Availability(false, reason);
    }
}
