package org.millrace.device;

import java.util.ArrayList;
import java.util.List;

/**
 * The transfers of one block for an operation on a channel: chunks of one shape, by one schedule. A ring has one task.
 * A tree has two tasks, up and down.
 *
 * @param index index of the connection with a peer: collectives and point-to-point transfers have one connection each
 * @param from  peers that it receives from, in the order of combination
 * @param to    peers that it sends to
 */
public record ChannelTask(ChunkSchedule schedule, ChunkShape shape, int index, int[] from, int[] to) {

    static final int[] NO_PEERS = {};

    /** Returns a task with at most one peer on each side. A side has no peer if the schedule moves no chunk there. */
    static ChannelTask between(int from, ChunkSchedule schedule, ChunkShape shape, int index, int to) {
        return new ChannelTask(schedule, shape, index, schedule.chunksReceived() > 0 ? new int[] {from} : NO_PEERS,
                schedule.chunksSent() > 0 ? new int[] {to} : NO_PEERS);
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
