package org.millrace.net.plugin;

import java.time.Duration;
import java.util.List;

/**
 * How a plugin is used.
 *
 * @param devices     numbers of the devices that connections go over, in turns; empty for all that the plugin has
 * @param inlineBytes the longest payload that is copied behind its header, 0 to 1 MiB: a longer one needs two messages,
 *                    of which the second waits until its receiver knows where it belongs
 * @param pieceBytes  the longest message of any other payload
 * @param maxRecvs    the most buffers of one receive, as far as the plugin allows them
 * @param callLimit   after which a call of the plugin's that has not returned is named
 */
public record PluginOptions(List<Integer> devices, int inlineBytes, long pieceBytes, int maxRecvs, Duration callLimit) {

    /** Copies the list. */
    public PluginOptions {
        devices = List.copyOf(devices);
    }

    /** All devices, 16 KiB with a header, messages of 1 MiB, as many at once as NCCL has, 10 s for a call. */
    public static PluginOptions defaults() {
        return new PluginOptions(List.of(), 16 << 10, 1 << 20, PluginDevice.MAX_RECVS, Duration.ofSeconds(10));
    }

    /** Certain devices, and receives of at most so many buffers. */
    public PluginOptions withDevices(List<Integer> chosen, int mostBuffers) {
        return new PluginOptions(chosen, inlineBytes, pieceBytes, mostBuffers, callLimit);
    }

    /** Other lengths: see the record's parameters. */
    public PluginOptions withMessages(int inline, long piece) {
        return new PluginOptions(devices, inline, piece, maxRecvs, callLimit);
    }

    public PluginOptions withCallLimit(Duration limit) {
        return new PluginOptions(devices, inlineBytes, pieceBytes, maxRecvs, limit);
    }
}
