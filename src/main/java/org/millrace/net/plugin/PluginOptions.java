package org.millrace.net.plugin;

import java.time.Duration;
import java.util.List;

/**
 * Options of a plugin.
 *
 * @param devices     numbers of the devices that connections use, in turns; empty for all devices of the plugin
 * @param inlineBytes maximum length of a payload that is copied behind its header, 0 to 1 MiB. A longer one needs two
 *                    messages. The second waits until its receiver knows its destination.
 * @param pieceBytes  maximum length of a message of any other payload
 * @param maxRecvs    maximum number of buffers of one receive, unless the plugin allows fewer
 * @param callLimit   time after which a call of the plugin that has not returned is logged
 */
public record PluginOptions(List<Integer> devices, int inlineBytes, long pieceBytes, int maxRecvs, Duration callLimit) {

    /** Copies the list. */
    public PluginOptions {
        devices = List.copyOf(devices);
    }

    /**
     * Returns the defaults: all devices, 16 KiB with a header, messages of 1 MiB, NCCL's number of buffers, and 10 s
     * per call.
     */
    public static PluginOptions defaults() {
        return new PluginOptions(List.of(), 16 << 10, 1 << 20, PluginDevice.MAX_RECVS, Duration.ofSeconds(10));
    }

    /** Returns options with these devices, and receives of at most this number of buffers. */
    public PluginOptions withDevices(List<Integer> chosen, int mostBuffers) {
        return new PluginOptions(chosen, inlineBytes, pieceBytes, mostBuffers, callLimit);
    }

    /** Returns options with these lengths, described at the record's parameters. */
    public PluginOptions withMessages(int inline, long piece) {
        return new PluginOptions(devices, inline, piece, maxRecvs, callLimit);
    }

    public PluginOptions withCallLimit(Duration limit) {
        return new PluginOptions(devices, inlineBytes, pieceBytes, maxRecvs, limit);
    }
}
