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
 * Common part of one network's connections: the plugin, its devices, used in turns, and the open resources.
 *
 * @param devices     at least one device
 * @param inlineBytes maximum length of a payload that follows its header in the message
 * @param pieceBytes  maximum length of a message of any other payload
 * @param maxRecvs    maximum number of buffers of one receive
 * @param callLimit   time after which a call that has not returned is logged
 * @param regions     IDs of the registered memory
 * @param watch       watch for calls that belong to no connection; guarded by itself
 */
record DeviceSet(OpenResources open, Session session, List<PluginDevice> devices, int inlineBytes, long pieceBytes,
        int maxRecvs, Duration callLimit, BitSet regions, CallWatch watch, AtomicInteger turn) {

    NetTable table() {
        return session.table();
    }

    /** Returns the number of the next connection's first device. */
    int next() {
        return Math.floorMod(turn.getAndIncrement(), devices.size());
    }

    /** Returns the device for a device of the peer: the first for the first, and so on. */
    PluginDevice matching(int peers) {
        return devices.get(peers % devices.size());
    }

    /** Returns the capabilities of a connection, valid for all devices. */
    FrameSizes sizes() {
        long piece = pieceBytes;
        int recvs = maxRecvs;
        // data received into a device's memory needs a flush
        int kinds = table().has(NetFunction.IFLUSH) ? -1 : plugin_h.NCCL_PTR_HOST();
        for (PluginDevice device : devices) {
            piece = Math.min(piece, device.maxBytes());
            recvs = Math.min(recvs, device.maxRecvs());
            kinds &= device.ptrSupport();
        }
        return new FrameSizes(inlineBytes, piece, recvs, kinds);
    }
}
