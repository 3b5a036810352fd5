package org.millrace.net.plugin;

import java.time.Duration;
import java.util.List;

/**
 * Options of a network that uses a plugin.
 *
 * @param devices     indexes of the devices that connections use in turn; empty to use all devices of the plugin
 * @param inlineBytes maximum length of a payload that is copied behind its header, 0 to 1 MiB. A longer payload is sent
 *                    in separate messages. These messages wait until the receiver knows the destination of the payload.
 * @param pieceBytes  maximum length of a piece; each piece of a payload longer than {@code inlineBytes} is sent in its
 *                    own message
 * @param maxRecvs    maximum number of buffers of one receive; the plugin may allow fewer
 * @param callLimit   time after which a call of the plugin is logged if the call has not returned
 */
public record PluginOptions(List<Integer> devices, int inlineBytes, long pieceBytes, int maxRecvs, Duration callLimit) {

    public PluginOptions {
        devices = List.copyOf(devices);
    }

    /**
     * Returns the default options. Connections use all devices, send payloads of up to 16 KiB in one message with their
     * header, and use pieces of up to 1 MiB. One receive has at most {@value PluginDevice#MAX_RECVS} buffers, the
     * maximum of NCCL. A call that takes longer than 10 s is logged.
     */
    public static PluginOptions defaults() {
        return new PluginOptions(List.of(), 16 << 10, 1 << 20, PluginDevice.MAX_RECVS, Duration.ofSeconds(10));
    }

    /** Returns these options with other devices, and with another maximum number of buffers of one receive. */
    public PluginOptions withDevices(List<Integer> chosen, int mostBuffers) {
        return new PluginOptions(chosen, inlineBytes, pieceBytes, mostBuffers, callLimit);
    }
}
