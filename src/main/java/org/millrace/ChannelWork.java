package org.millrace;

/**
 * Start and end of the work that one kernel does on one channel, as recorded by the device.
 *
 * @param channel   number of the channel
 * @param number    number of the work on this channel, from 1
 * @param started   start time, on the clock of {@link System#nanoTime}
 * @param completed completion time on the same clock; -1 before completion
 */
public record ChannelWork(int channel, long number, long started, long completed) {
}
