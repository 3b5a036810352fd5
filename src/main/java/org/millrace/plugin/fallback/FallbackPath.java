package org.millrace.plugin.fallback;

import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.check.FrameCheck;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.UnpackDevice;

/**
 * Data path on which NCCL's own proxy moves the data. The thread of NCCL's proxy calls isend, irecv and test, and data
 * moves within these calls.
 */
public final class FallbackPath implements DataPath {

    private static final byte ID = 1;

    /**
     * Maximum number of streams of a connection. Each sending rank of a host needs one stream, so this maximum also
     * limits the sending ranks.
     */
    private static final int STREAMS = 32;

    private final @Nullable UnpackDevice unpack;
    private final int maxRecvs;
    private final PayloadCheck check;

    /**
     * @param unpack   memory that the plugin and unpacking kernels share, closed with this data path; null if kernels
     *                 do not unpack
     * @param maxRecvs maximum number of buffers of one receive; 1 if kernels unpack. Such kernels number a connection's
     *                 slices in sequence, and messages with different tags have no common sequence
     * @param check    reaction to a message whose payload has changed
     */
    public FallbackPath(@Nullable UnpackDevice unpack, int maxRecvs, PayloadCheck check) {
        this.unpack = unpack;
        this.maxRecvs = maxRecvs;
        this.check = check;
    }

    @Override
    public int maxRecvs() {
        return maxRecvs;
    }

    @Override
    public int streams() {
        return maxRecvs == 1 ? 1 : STREAMS;
    }

    @Override
    public byte id() {
        return ID;
    }

    /**
     * Returns the check of one stream. After a failure the check does not read the payloads of messages in flight,
     * because NCCL may then free their memory.
     */
    private FrameCheck check(FrameEnd end) {
        return new FrameCheck(check, FallbackConnection.TAG, RequestRing.CAPACITY, false, _ -> true,
                header -> end + ", message with tag " + (int) header.word(FallbackConnection.TAG));
    }

    @Override
    public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, @Nullable IntFunction<Pending<FrameSender>> more) {
        FrameSender checked = check(sender).of(sender);
        return more == null ? new FallbackConnection.Sender(checked, network)
                : new TaggedSender(checked, network, STREAMS,
                        stream -> more.apply(stream).map(each -> check(each).of(each)));
    }

    @Override
    public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, List<Pending<FrameReceiver>> more) {
        FrameReceiver checked = check(receiver).of(receiver);
        return maxRecvs > 1
                ? new TaggedReceiver(checked, network, maxRecvs,
                        more.stream().map(each -> each.map(stream -> check(stream).of(stream))).toList())
                : new FallbackConnection.Receiver(checked, network,
                        unpack == null ? null : unpack.connection(network, true));
    }

    @Override
    public void close() {
        if (unpack != null) {
            unpack.close();
        }
    }

    @Override
    public boolean unpacks() {
        return unpack != null;
    }

    @Override
    public String toString() {
        return "NCCL's proxy moves the data (isend, irecv, test)"
                + (maxRecvs == 1 ? "" : ", up to " + maxRecvs + " buffers at once")
                + (unpack == null ? "" : "; " + unpack);
    }
}
