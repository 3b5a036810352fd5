package org.millrace.plugin.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.IdleStrategy;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.gin.GinAgent;
import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.WindowMemory;
import org.millrace.net.Network;
import org.millrace.plugin.host.NativeMemory;

/** The host as the device of emulated GIN kernels. All memory is host memory. */
final class HostGinDevice implements GinDevice {

    private static final long ALIGNMENT = 128;

    private final GinAgent agent;
    private final AgentRunner runner;
    private final Map<Long, Arena> allocated = new ConcurrentHashMap<>();
    private final Arena arena = Arena.ofShared();
    private final boolean shared;

    HostGinDevice(String name, boolean shared) {
        this(name, shared, IdleProfile.ginProxy(true, Optional.empty(), Optional.empty()));
    }

    HostGinDevice(String name, boolean shared, IdleStrategy idle) {
        this.shared = shared;
        agent = new GinAgent(name);
        runner = AgentRunner.start(agent, idle);
    }

    @Override
    public GinAgent agent() {
        return agent;
    }

    @Override
    public long allocate(long bytes) {
        Arena owner = Arena.ofShared();
        long address = owner.allocate(bytes, ALIGNMENT).address();
        allocated.put(address, owner);
        return address;
    }

    @Override
    public void free(long address) {
        allocated.remove(address).close();
    }

    @Override
    public Shared share(long bytes) {
        long address = arena.allocate(bytes, ALIGNMENT).address();
        // The segment may have the global scope, because the memory is freed only after the agent has released it.
        return new Shared(NativeMemory.at(address, bytes), address);
    }

    @Override
    public boolean sharesMemory() {
        return shared;
    }

    @Override
    public Pinned pin(MemorySegment memory) {
        return new Pinned(memory.address(), () -> {});
    }

    @Override
    public boolean settle() {
        // The host's copies are complete when the call that makes them returns.
        return true;
    }

    @Override
    public void store(long address, MemorySegment bytes) {
        NativeMemory.at(address, bytes.byteSize()).copyFrom(bytes);
    }

    @Override
    public List<ForeignMemory.Ticket> invite(long address, long bytes, int type) {
        return List.of();
    }

    @Override
    public WindowMemory window(Network network, long address, int type, int rank, GinExchange.Offer[] all) {
        return HostWindowMemory.register(network, NativeMemory.at(address, all[rank].bytes()));
    }

    @Override
    public void close() {
        runner.close();
        allocated.values().forEach(Arena::close);
        arena.close();
    }
}
