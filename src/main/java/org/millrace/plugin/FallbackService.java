package org.millrace.plugin;

import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;

/** NCCL's own proxy stays in charge: its thread calls isend, irecv and test, and data moves within these calls. */
final class FallbackService implements ConnectionService {

    private static final byte ID = 1;

    private final UnpackDevice unpack;

    /**
     * A service without threads.
     *
     * @param unpack what kernels that unpack need, closed with the service; null for those that do not
     */
    FallbackService(UnpackDevice unpack) {
        this.unpack = unpack;
    }

    @Override
    public byte id() {
        return ID;
    }

    @Override
    public Connection sending(FrameSender sender, Network network, DrainPatience patience) {
        return new FallbackSender(sender, network);
    }

    @Override
    public Connection receiving(FrameReceiver receiver, Network network, DrainPatience patience) {
        return new FallbackReceiver(receiver, network, unpack == null ? null : unpack.connection(network, true));
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
