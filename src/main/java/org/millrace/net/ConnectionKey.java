package org.millrace.net;

/**
 * Tells the connections of one listener apart; both ends know it before they connect.
 *
 * @param high any value
 * @param low  any value; the pair is unique for its listener
 */
public record ConnectionKey(long high, long low) {
    @Override
    public String toString() {
        return Long.toHexString(high) + ":" + Long.toHexString(low);
    }
}
