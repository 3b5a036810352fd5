package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.Registration;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/** Registered user memory. Decides whether an operation uses memory in place (mode PTR). */
final class Registrations implements AutoCloseable {

    /** Value that stands for the peer's rank if an operation has no peer in a direction. */
    public static final int NO_RANK = -1;

    /**
     * Minimum size of a hop in bytes at which peers read registered memory in place, for operations that combine
     * elements. The data of a smaller hop passes through slots, because a sender copies this data as fast as the
     * receiver reads it. Measured with {@code RegisteredBench}, with two ranks of one process over P2P and SHM. From
     * this size on, operations with registered operands take 0.9 to 1.0 times as long as operations through slots. At
     * half this size, they take 1.1 times as long.
     */
    private static final long LEAST_COMBINED = 64 << 10;
    /**
     * Minimum size of a hop in bytes at which peers read registered memory in place, for operations that only move
     * elements. In these operations, the use of slots costs one additional copy.
     */
    private static final long LEAST_MOVED = 256 << 10;

    private static final Logger LOG = LogManager.getLogger(Registrations.class);

    /** @param read whether some peer's device reads the memory directly, without a proxy */
    private record Registered(long address, long bytes, RegisteredMemory memory, boolean read) {

        boolean holds(MemorySegment operand, long length) {
            long offset = operand.address() - address;
            return offset >= 0 && offset <= bytes - length;
        }
    }

    private final int rank;
    /** Connections of the communicator; null in a communicator of one rank. */
    private final TransportConnections connections;
    private final long threshold;
    private final Optional<Long> readThreshold;
    private final List<Registered> all = new CopyOnWriteArrayList<>();
    private final AtomicInteger version = new AtomicInteger();
    /**
     * For each peer whose transport requires no registration, the region for unregistered memory; null in a
     * communicator of one rank.
     */
    private final RegisteredMemory anything;

    /**
     * @param threshold     minimum size of a hop in bytes at which unregistered memory is used in place
     * @param readThreshold minimum size of a hop in bytes at which peers read registered memory in place; if empty,
     *                      {@link #LEAST_COMBINED} and {@link #LEAST_MOVED} apply
     */
    public Registrations(int rank, TransportConnections connections, long threshold, Optional<Long> readThreshold) {
        this.readThreshold = readThreshold;
        this.rank = rank;
        this.connections = connections;
        this.threshold = threshold;
        this.anything = connections == null ? null : connections.allMemory();
    }

    /** @param quiet action that waits until no launched operation accesses the memory */
    public Registration add(MemorySegment memory, Runnable quiet) {
        if (connections == null) {
            return () -> {};
        }
        Registered registered = new Registered(memory.address(), memory.byteSize(), connections.register(memory),
                connections.isRead(memory));
        all.add(registered);
        version.incrementAndGet();
        return () -> {
            if (all.remove(registered)) {
                version.incrementAndGet();
                quiet.run();
                registered.memory().close();
            }
        };
    }

    /**
     * Returns a number that changes with each registration and deregistration. A plan is invalid if the number has
     * changed since the plan was made.
     */
    public int version() {
        return version.get();
    }

    /**
     * Returns whether peers' devices may read this rank's elements of an operand in place. The operand must be
     * registered, and some peer must be able to access it.
     *
     * @param hopBytes number of bytes of one hop
     * @param combined whether elements are combined, and not only moved
     */
    public boolean isRead(@Nullable MemorySegment operand, long bytes, long hopBytes, boolean combined,
            Protocol protocol) {
        if (operand == null || bytes == 0 || protocol != Protocol.SIMPLE
                || hopBytes < readThreshold.orElse(combined ? LEAST_COMBINED : LEAST_MOVED)) {
            return false;
        }
        for (Registered each : all) {
            if (each.read && each.holds(operand, bytes)) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether an operation could use memory in place. If not, the caller need not ask for regions. */
    public boolean mayHold(long hopBytes, Protocol protocol) {
        return !all.isEmpty() || hopBytes >= threshold && protocol == Protocol.SIMPLE;
    }

    /**
     * Returns the regions of an operation that does not combine elements; {@link UserRegions#NONE} if the data passes
     * through slots. The constant {@link #NO_RANK} marks a direction without a peer.
     *
     * @param operand memory of all elements of the operation
     */
    public UserRegions of(MemorySegment operand, long bytes, Protocol protocol, int from, int to) {
        if (all.isEmpty() || bytes == 0) {
            return UserRegions.NONE;
        }
        for (Registered each : all) {
            if (each.holds(operand, bytes)) {
                return of(each, bytes, protocol, from, to);
            }
        }
        LOG.debug("rank {}: {} bytes go through slots: they are not registered", rank, bytes);
        return UserRegions.NONE;
    }

    /**
     * Returns regions that let an operation use any user memory in place, registered or not. Returns
     * {@link UserRegions#NONE} if a hop of the operation is too small, or if a network requires registered memory.
     *
     * @param hopBytes number of bytes of one hop
     */
    public UserRegions ofAny(long hopBytes, Protocol protocol, int from, int to) {
        if (hopBytes < threshold || protocol != Protocol.SIMPLE) {
            return UserRegions.NONE;
        }
        MemoryRegion received = from == NO_RANK ? null : anything.with(from);
        MemoryRegion sent = to == NO_RANK ? null : anything.with(to);
        return from != NO_RANK && received == null || to != NO_RANK && sent == null ? UserRegions.NONE
                : new UserRegions(received, sent);
    }

    private UserRegions of(Registered registered, long bytes, Protocol protocol, int from, int to) {
        MemoryRegion received = from == NO_RANK ? null : registered.memory.with(from);
        MemoryRegion sent = to == NO_RANK ? null : registered.memory.with(to);
        if (protocol != Protocol.SIMPLE) {
            LOG.debug("rank {}: {} registered bytes go through slots: they travel in {}", rank, bytes, protocol);
            return UserRegions.NONE;
        }
        if (from != NO_RANK && received == null || to != NO_RANK && sent == null) {
            if (!registered.read) {
                LOG.debug(
                        "rank {}: {} registered bytes go through slots: rank {} does not reach them; "
                                + "allocate them with the communicator's device",
                        rank, bytes, from != NO_RANK && received == null ? from : to);
            }
            return UserRegions.NONE;
        }
        return new UserRegions(received, sent);
    }

    /** Releases all memory. The communicator's proxies must have stopped. */
    @Override
    public void close() {
        for (Registered each : all) {
            each.memory().close();
        }
        all.clear();
        if (anything != null) {
            anything.close();
        }
    }

    /**
     * User memory that an operation uses in place, as registered with the networks of its connections. {@code received}
     * is null if nothing is received or the elements arrive in slots. {@code sent} is null if nothing is sent or the
     * elements leave through slots.
     */
    public record UserRegions(@Nullable MemoryRegion received, @Nullable MemoryRegion sent) {

        /** No regions: the data passes through slots. */
        public static final UserRegions NONE = new UserRegions(null, null);
    }
}
