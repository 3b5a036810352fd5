package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.MemoryFrames;

/** A network that only registers memory. A test makes its own connections. */
final class NoNetwork implements Network {
    @Override
    public String name() {
        return "none";
    }

    @Override
    public Listener listen() {
        throw new UnsupportedOperationException();
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        throw new UnsupportedOperationException();
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return MemoryFrames.region(memory);
    }

    @Override
    public void close() {
        // This network holds no resources.
    }
}
