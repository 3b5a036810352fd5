package org.millrace.net.fault;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;

/** Any network, with faults in what is sent from here. What is received passes untouched. */
public final class FaultyNetwork implements Network {

    private final Network network;
    private final List<ArmedFault> faults;
    private final AtomicLong injected = new AtomicLong();
    private final AtomicLong connections = new AtomicLong();

    /**
     * A network that goes wrong.
     *
     * @param network the network that moves the frames; it is closed with this one
     * @param faults  what goes wrong, each once
     */
    public FaultyNetwork(Network network, List<Fault> faults) {
        this.network = network;
        this.faults = faults.stream().map(fault -> new ArmedFault(fault, injected)).toList();
    }

    /**
     * How many faults have happened: a test that passes with fewer than it ordered has shown nothing.
     *
     * @return a count that only grows
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
        Pending<FrameSender> pending = network.connect(address, key);
        return new Pending<>() {
            @Override
            public FrameSender poll() {
                FrameSender sender = pending.poll();
                return sender == null ? null : wrap(sender, number);
            }

            @Override
            public void close() {
                pending.close();
            }
        };
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
    public MemoryRegion allMemory() {
        return network.allMemory();
    }

    @Override
    public void close() {
        network.close();
    }
}
