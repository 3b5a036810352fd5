package org.millrace.transport.shared;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.proxy.CopyProxy;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.TransportEnd;

/**
 * An end of a connection whose slots and counters lie in memory that both ends reach.
 *
 * <pre>
 *   direct             sending device ─────────▶ common memory ─────────▶ receiving device
 *   the sender copies  sending device ▶ its own ▶ proxy ▶ common memory ▶ receiving device
 *   the receiver copies                          common memory ▶ proxy ▶ its own ▶ receiving device
 * </pre>
 *
 * Directly, {@code head} and {@code tail} go from device to device, and nobody is told of a step; how the two ranks run
 * the same operation is checked when it is announced ({@link OperationCheck}).
 */
final class SharedMemoryEnd implements TransportEnd {

    private final EndRequest request;
    private final CommonMemory.Source source;
    private final boolean owns;
    private final boolean copies;
    private final OperationQueue operations = new OperationQueue();
    private @Nullable CommonMemory common;
    private @Nullable ConnectionInfo shared;
    private @Nullable OperationCheck check;
    /** Of what this end copies from or into; null if it does not copy. */
    private @Nullable Arena arena;
    private @Nullable ConnectionInfo own;
    private @Nullable CopyProxy proxy;

    /**
     * @param owns   whether this end makes the memory; the other one does not
     * @param copies whether a proxy of this end copies between the common memory and memory of its own
     */
    SharedMemoryEnd(EndRequest request, CommonMemory.Source source, boolean owns, boolean copies) {
        this.request = request;
        this.source = source;
        this.owns = owns;
        this.copies = copies;
    }

    /** Why the ranks must not share memory: the user wants every step to be a frame of a network. */
    static Optional<Availability> refusal(Configuration configuration) {
        if (!configuration.get(Settings.NETWORK).equals(Settings.NETWORK.defaultValue())) {
            return Optional.of(Availability.no("MILLRACE_NET=" + configuration.get(Settings.NETWORK)));
        }
        return configuration.get(Settings.FAULT)
                .map(fault -> Availability.no("MILLRACE_FAULT is planted in a network"));
    }

    @Override
    public void proxySetup() {
        if (copies) {
            arena = Arena.ofShared();
            own = ConnectionInfo.allocate(arena, layout(), firstStep());
        }
    }

    @Override
    public byte[] setup() {
        if (!owns) {
            return new byte[0];
        }
        common = source.create(layout().totalBytes() + OperationCheck.BYTES);
        shared = ConnectionInfo.at(common.segment(), layout(), firstStep());
        return common.handle();
    }

    @Override
    public boolean proxyConnect(byte[] peer) {
        if (!owns) {
            common = source.open(peer, layout().totalBytes() + OperationCheck.BYTES);
            shared = ConnectionInfo.over(common.segment(), layout(), firstStep());
        }
        check = new OperationCheck(request.name(),
                common.segment().asSlice(layout().totalBytes(), OperationCheck.BYTES), request.sends());
        if (copies) {
            boolean sends = request.sends();
            proxy = new CopyProxy(request.name(), sends ? own : shared, sends ? shared : own, operations,
                    request.settings().listener());
            proxy.tracedBy(request.trace(Direction.COPY, "shared memory"));
        }
        return true;
    }

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    private ConnectionLayout layout() {
        return request.settings().layout();
    }

    private long firstStep() {
        return request.settings().firstStep();
    }

    @Override
    public String way() {
        return copies ? "by copy" : "";
    }

    @Override
    public ConnectionInfo info() {
        return copies ? own : shared;
    }

    @Override
    public void announce(ProxyOp op) {
        RuntimeException disagreement = check.announce(op);
        if (disagreement != null) {
            request.settings().failure().accept(disagreement);
        } else if (copies && op.steps() > 0) {
            operations.add(op);
        }
    }

    @Override
    public List<ProxyConnection> proxyProgress() {
        return copies ? List.of(proxy) : List.of();
    }

    @Override
    public void proxyFree() {
        if (arena != null) {
            arena.close();
            arena = null;
        }
    }

    @Override
    public void free() {
        if (common != null) {
            common.close();
        }
    }

    /** Memory that both ends of a connection reach, each in its own way. */
    interface CommonMemory {

        /** The ways to get such memory. */
        interface Source {

            /** Makes memory of zeros. */
            CommonMemory create(long bytes);

            /** Reaches memory that the other end made, with what its {@link CommonMemory#handle} said. */
            CommonMemory open(byte[] handle, long bytes);
        }

        /** All of it; of the global scope, not to be touched after {@link #close}. */
        MemorySegment segment();

        /** What the other end needs to reach it. */
        byte[] handle();

        /** This end needs it no longer. May be called twice. */
        void close();
    }
}
