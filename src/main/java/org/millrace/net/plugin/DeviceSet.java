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
 * What connections of one network have in common: the plugin, which of its devices are used, in turns, and what is
 * open.
 *
 * @param devices     at least one
 * @param inlineBytes the longest payload that goes with its header
 * @param pieceBytes  the longest message of any other payload
 * @param maxRecvs    the most buffers of one receive
 * @param callLimit   after which a call that has not returned is named
 * @param regions     ids of the memory that is registered
 * @param watch       for calls that are no connection's; guarded by itself
 */
record DeviceSet(OpenResources open, Session session, List<PluginDevice> devices, int inlineBytes, long pieceBytes,
        int maxRecvs, Duration callLimit, BitSet regions, CallWatch watch, AtomicInteger turn) {

    NetTable table() {
        return session.table();
    }

    /** Which device the next connection begins with. */
    int next() {
        return Math.floorMod(turn.getAndIncrement(), devices.size());
    }

    /** The device that goes with one of the peer's: the first with the first, and so on. */
    PluginDevice matching(int peers) {
        return devices.get(peers % devices.size());
    }

    /** What a connection can do, on whichever device it is. */
    FrameSizes sizes() {
        long piece = pieceBytes;
        int recvs = maxRecvs;
        // what is received into a device's memory has to be flushed
        int kinds = table().has(NetFunction.IFLUSH) ? -1 : plugin_h.NCCL_PTR_HOST();
        for (PluginDevice device : devices) {
            piece = Math.min(piece, device.maxBytes());
            recvs = Math.min(recvs, device.maxRecvs());
            kinds &= device.ptrSupport();
        }
        return new FrameSizes(inlineBytes, piece, recvs, kinds);
    }
}
