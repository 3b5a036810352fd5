package org.millrace.plugin.fallback;

import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.plugin.net.DataPath;
import org.millrace.plugin.unpack.UnpackDevice;

/** NCCL's own proxy stays in charge: its thread calls isend, irecv and test, and data moves within these calls. */
public final class FallbackPath implements DataPath {

    private static final byte ID = 1;

    private final @Nullable UnpackDevice unpack;

    /**
     * A path without threads.
     *
     * @param unpack what kernels that unpack need, closed with the path; null for those that do not
     */
    public FallbackPath(@Nullable UnpackDevice unpack) {
        this.unpack = unpack;
    }

    @Override
    public byte id() {
        return ID;
    }

    @Override
    public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number) {
        return new FallbackConnection.Sender(sender, network);
    }

    @Override
    public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number) {
        return new FallbackConnection.Receiver(receiver, network,
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
        return "NCCL's proxy moves the data (isend, irecv, test)" + (unpack == null ? "" : "; " + unpack);
    }
}
