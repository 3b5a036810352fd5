package org.millrace.plugin.takeover;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.UnpackDevice;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.UnpackReceiveSource;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;

/** The receiving end of a connection that was taken over. */
final class TakeoverReceiver extends TakeoverConnection {

    private final FrameReceiver receiver;
    private final UnpackDevice.@Nullable Connection unpack;

    /**
     * Creates a receiver. Its proxy starts when NCCL has registered the memory.
     *
     * @param unpack memory that the connection shares with kernels that unpack; null if kernels do not unpack
     */
    TakeoverReceiver(FrameReceiver receiver, Network network, TakeoverService service, DataPath.Owner owner,
            DataPath.ConnectionNumber number, UnpackDevice.@Nullable Connection unpack) {
        super(new End(receiver, receiver.peer(), receiver::blame, receiver::close), network, service, owner, number);
        this.receiver = receiver;
        this.unpack = unpack;
    }

    /** Returns false, because the memory does not show whether a kernel waits for data. */
    @Override
    boolean owes(ProxyConnection stopped) {
        return false;
    }

    @Override
    public long deviceHandle() {
        return unpack == null ? super.deviceHandle() : unpack.deviceHandle();
    }

    @Override
    boolean receives() {
        return true;
    }

    /**
     * Returns the size in bytes of the memory into which LL and LL128 lines are received, before the proxy stores each
     * line in its slot.
     */
    @Override
    long stagingBytes(ConnectionLayout layout) {
        return layout.bufferOffset(Protocol.SIMPLE);
    }

    @Override
    AbstractProxy start(SlotBuffers buffers, MemoryRegion lines, @Nullable Staging device) {
        ConnectionName name = ConnectionName.of(receiver.toString());
        FrameReceiver checked = check().of(receiver);
        if (unpack == null) {
            return ReceiveProxy.byMemory(name, buffers, lines, 0,
                    device == null ? checked : new StagedReceiver(checked, device), this::stopped);
        }
        UnpackReceiveSource.UnpackMemory pages = unpack.prepare(buffers.layout().slotBytes(Protocol.SIMPLE));
        return ReceiveProxy.byMemory(name, buffers, lines, 0, checked, this::stopped,
                slots -> new UnpackReceiveSource(name, pages, slots));
    }

    /** Returns zero, because a completed kernel has received all its data. */
    @Override
    Duration drainTimeout() {
        return Duration.ZERO;
    }

    @Override
    void gaveUp(String lastSeen) {
        // A receiver drops data only after an abort. Such a drop needs no report.
    }

    @Override
    void closed() {
        if (unpack != null) {
            unpack.close();
        }
    }
}
