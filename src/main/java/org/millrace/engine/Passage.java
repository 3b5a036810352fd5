package org.millrace.engine;

import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.device.function.Block;
import org.millrace.device.function.ChunkSchedule;
import org.millrace.device.function.PrimitiveBlock;
import org.millrace.device.primitives.BlockMemory;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.engine.connect.Connector;
import org.millrace.engine.connect.Hops;

/**
 * An operation's way through a channel. Host and device derive the same one from the same work: the host to announce it
 * to the proxies, the device to go it.
 *
 * @param algorithm at its beginning
 * @param shape     of its chunks
 * @param from      the connections it receives on
 * @param to        the connections it sends on
 */
record Passage(ChunkSchedule algorithm, ChunkShape shape, Hops<ReceivePort> from, Hops<SendPort> to) {

    /** @param regions that the shape is for */
    void announce(Identity identity, UserRegions regions) {
        for (Connector<ReceivePort> connector : from.connectors()) {
            connector.announce(identity.share(algorithm.chunksReceived(), shape, regions.received()));
        }
        for (Connector<SendPort> connector : to.connectors()) {
            connector.announce(identity.share(algorithm.chunksSent(), shape, regions.sent()));
        }
    }

    Block block(BlockMemory memory) {
        return new PrimitiveBlock(algorithm, memory, shape, from.endpoints(), to.endpoints());
    }
}
