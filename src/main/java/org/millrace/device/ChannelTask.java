package org.millrace.device;

import java.util.ArrayList;
import java.util.List;

/**
 * The transfers of one block for an operation on a channel. All chunks have the same {@link ChunkShape} and follow one
 * schedule. A ring has one task. A tree has two tasks: one up and one down.
 *
 * @param index index of the connection with a peer; collectives and point-to-point transfers use different connections
 * @param from  peers that the block receives from; their elements are combined in this order
 * @param to    peers that the block sends to
 */
public record ChannelTask(ChunkSchedule schedule, ChunkShape shape, int index, int[] from, int[] to) {

    static final int[] NO_PEERS = {};

    /**
     * Returns a task that receives from at most one peer and sends to at most one peer. If the schedule receives no
     * chunks, the task has no peer to receive from. If the schedule sends no chunks, the task has no peer to send to.
     */
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
