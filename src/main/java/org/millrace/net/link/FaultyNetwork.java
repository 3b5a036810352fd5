package org.millrace.net.link;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/**
 * A network that plants faults in the connections that this process sends on, and in the frames that it sends. Frames
 * that this process receives are unchanged.
 */
final class FaultyNetwork implements Network {

    private final Network network;
    private final List<ArmedFault> faults;
    private final AtomicLong injected = new AtomicLong();
    private final AtomicLong connections = new AtomicLong();

    /** @param faults the faults to plant; each happens once */
    public FaultyNetwork(Network network, List<Fault> faults) {
        this.network = network;
        this.faults = faults.stream().map(fault -> new ArmedFault(fault, injected)).toList();
    }

    /**
     * Returns the number of faults that have happened. A test must compare this number with the number of planted
     * faults, because a test without its fault proves nothing.
     */
    public long faultsInjected() {
        return injected.get();
    }

    @Override
    public String name() {
        return network.name();
    }

    @Override
    public Listener listen() {
        return network.listen();
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        long number = connections.incrementAndGet();
        return network.connect(address, key).map(sender -> wrap(sender, number));
    }

    private FrameSender wrap(FrameSender sender, long number) {
        List<ArmedFault> concerning = faults.stream().filter(fault -> fault.concerns(number)).toList();
        return concerning.isEmpty() ? sender : new FaultySender(sender, network, concerning);
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return network.register(memory);
    }

    @Override
    public @Nullable MemoryRegion allMemory() {
        return network.allMemory();
    }

    @Override
    public void awaitPeers() {
        network.awaitPeers();
    }

    @Override
    public void close() {
        network.close();
    }

    /**
     * A planted fault, which waits for its frame and happens once: on the first connection that the fault's text allows
     * and that reaches this frame.
     */
    static final class ArmedFault {

        private final Fault fault;
        private final AtomicLong injected;
        private final AtomicBoolean happened = new AtomicBoolean();

        /** @param injected counter of the network's faults that have happened; this fault increments it */
        ArmedFault(Fault fault, AtomicLong injected) {
            this.fault = fault;
            this.injected = injected;
        }

        Fault fault() {
            return fault;
        }

        /** Returns whether the fault can happen to the connection with the given number. */
        boolean concerns(long connection) {
            return fault.connection() == 0 || fault.connection() == connection;
        }

        /** Returns whether the fault is of the given kind, has not happened yet, and is due at the given frame. */
        boolean isDue(Fault.Kind kind, long frame) {
            return fault.kind() == kind && frame >= fault.frame() && !happened.get();
        }

        /** Claims the fault for one connection. Returns false if another connection has claimed it before. */
        boolean claim() {
            if (!happened.compareAndSet(false, true)) {
                return false;
            }
            injected.incrementAndGet();
            Fault.PlantedFaults.happened(fault);
            return true;
        }
    }
}
