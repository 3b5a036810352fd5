package org.millrace;

/**
 * When a channel's part of a kernel ran, as the device noted it.
 *
 * @param channel   number of the channel
 * @param number    of the work on this channel, from 1 on
 * @param started   when it began, as {@link System#nanoTime} tells time
 * @param completed when it was complete; -1 while it is not
 */
public record ChannelWork(int channel, long number, long started, long completed) {
}
