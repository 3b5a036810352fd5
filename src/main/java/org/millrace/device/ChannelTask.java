package org.millrace.device;

import java.util.ArrayList;
import java.util.List;

/**
 * What one block sends and receives for an operation on a channel: chunks of one shape, by one schedule. A ring has one
 * task, a tree two, up and down.
 *
 * @param index which of the connections with a peer: that of collectives, or that of sends and receives
 * @param from  the peers that it receives from, in the order in which elements are combined
 * @param to    the peers that it sends to
 */
public record ChannelTask(ChunkSchedule schedule, ChunkShape shape, int index, int[] from, int[] to) {

    static final int[] NOBODY = {};

    /** A task with at most one peer on each side, if the schedule has something for it. */
    static ChannelTask between(int from, ChunkSchedule schedule, ChunkShape shape, int index, int to) {
        return new ChannelTask(schedule, shape, index, schedule.chunksReceived() > 0 ? new int[] {from} : NOBODY,
                schedule.chunksSent() > 0 ? new int[] {to} : NOBODY);
    }

    Block block(BlockMemory memory, DeviceChannel channel) {
        List<DeviceEndpoint<ReceivePort>> receiving = new ArrayList<>(from.length);
        for (int peer : from) {
            receiving.add(channel.receive(peer, index));
        }
        List<DeviceEndpoint<SendPort>> sending = new ArrayList<>(to.length);
        for (int peer : to) {
            sending.add(channel.send(peer, index));
        }
        return new PrimitiveBlock(schedule, memory, shape, receiving, sending);
    }
}
