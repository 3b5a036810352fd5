package org.millrace.net.socket;

/**
 * A pair of network interfaces, one on each of two hosts, given by a local address and a remote address.
 *
 * @param number ordinal of the rail, from 0
 * @param name   both addresses, for messages
 */
record Rail(int number, String name) {

    @Override
    public String toString() {
        return "rail " + number + " (" + name + ")";
    }
}
