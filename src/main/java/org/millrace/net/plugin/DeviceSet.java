package org.millrace.net.plugin;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * Data that all connections of one network share: the plugin, its devices, and the open resources. New connections use
 * the devices cyclically.
 *
 * @param devices     the devices; at least one
 * @param inlineBytes maximum length of a payload that is sent in the same message as its header
 * @param pieceBytes  maximum length of a piece; each piece of a longer payload is sent in its own message
 * @param maxRecvs    maximum number of buffers of one receive
 * @param callLimit   time after which a call is logged if the call has not returned
 * @param regions     IDs of the registered memory
 * @param watch       watch for calls that belong to no connection
 * @param turn        number of calls of {@link #next} so far
 */
record DeviceSet(OpenResources open, Session session, List<PluginDevice> devices, int inlineBytes, long pieceBytes,
        int maxRecvs, Duration callLimit, BitSet regions, CallWatch watch, AtomicInteger turn) {

    NetTable table() {
        return session.table();
    }

    /** Returns the index of the device that the next connection tries first. */
    int next() {
        return Math.floorMod(turn.getAndIncrement(), devices.size());
    }

    /**
     * Returns this side's device for a connection. {@code peers} is the index of the peer's device for the connection.
     * If this side has fewer devices than the peer, the index wraps.
     */
    PluginDevice matching(int peers) {
        return devices.get(peers % devices.size());
    }

    /** Returns the capabilities that all devices have. */
    FrameSizes sizes() {
        long piece = pieceBytes;
        int recvs = maxRecvs;
        // Data that was received into device memory must be flushed. A plugin without a flush supports only host
        // memory.
        int kinds = table().has(NetFunction.IFLUSH) ? -1 : plugin_h.NCCL_PTR_HOST();
        for (PluginDevice device : devices) {
            piece = Math.min(piece, device.maxBytes());
            recvs = Math.min(recvs, device.maxRecvs());
            kinds &= device.ptrSupport();
        }
        return new FrameSizes(inlineBytes, piece, recvs, kinds);
    }
}
