package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.proxy.spi.ConnectionName;

/** The device's end of an established connection: its memory and its current step. */
public abstract sealed class Port permits SendPort, ReceivePort {

    final ConnectionName name;
    final ConnectionLayout layout;
    final SendMem sendMem;
    final RecvMem recvMem;
    private final MemorySegment buffers;
    private final MemorySegment simple;
    final long slotBytes;
    private final boolean shared;
    long step;

    Port(ConnectionName name, ConnectionInfo info) {
        this.name = name;
        this.layout = info.layout();
        this.sendMem = info.sendMem();
        this.recvMem = info.recvMem();
        this.buffers = info.buffers();
        this.shared = info.shared() != null;
        this.simple = shared ? info.shared().memory() : info.buffer(Protocol.SIMPLE);
        this.slotBytes = info.slotBytes(Protocol.SIMPLE);
        this.step = info.firstStep();
    }

    /**
     * Returns the number of the next step. All earlier steps were posted or consumed. Callable from any thread. Threads
     * except the device's thread may get a slightly outdated value.
     */
    public final long step() {
        return step;
    }

    public final MemorySegment buffer() {
        return simple;
    }

    /** Returns the offset of the next step's slot in {@link #buffer()}. */
    public final long slotOffset() {
        int slot = ConnectionLayout.slot(step);
        return shared ? recvMem.offsetPlain(slot) : slot * slotBytes;
    }

    public final long slotBytes() {
        return slotBytes;
    }

    public final MemorySegment lines() {
        return buffers;
    }

    /** Returns the offset of the next step's slot in {@link #lines()}. */
    public final long linesOffset(Protocol protocol) {
        return layout.slotOffset(protocol, step);
    }
}
