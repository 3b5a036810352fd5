package org.millrace.net.socket;

/**
 * One way between two hosts: one address on this side, one on the other.
 *
 * @param number from 0
 * @param name   its two addresses, for messages
 */
record Rail(int number, String name) {

    @Override
    public String toString() {
        return "rail " + number + " (" + name + ")";
    }
}
