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

/** The user's memory that operations may use in place (mode PTR), and which of them do. */
final class Registrations implements AutoCloseable {

    /** An operation has no peer in this direction. */
    public static final int NOBODY = -1;

    /**
     * The smallest hop for which peers read registered memory where it lies, where elements are combined: what is less
     * goes through slots, as a sender would have copied it by the time that the receiver has read it. Measured with
     * {@code RegisteredBench}, two ranks of one process over P2P and SHM: registered operands take 0.9 to 1.0 times as
     * long as others from here on, and 1.1 at half as much.
     */
    private static final long LEAST_COMBINED = 64 << 10;
    /** The same where elements are only moved: a slot then takes one copy more, and not a sum. */
    private static final long LEAST_MOVED = 256 << 10;

    private static final Logger LOG = LogManager.getLogger(Registrations.class);

    /** @param read whether some peer's device reads there, with no proxy between */
    private record Registered(long address, long bytes, RegisteredMemory memory, boolean read) {

        boolean holds(MemorySegment operand, long length) {
            long offset = operand.address() - address;
            return offset >= 0 && offset <= bytes - length;
        }
    }

    private final int rank;
    /** Null in a group of one. */
    private final TransportConnections connections;
    private final long threshold;
    private final Optional<Long> readThreshold;
    private final List<Registered> all = new CopyOnWriteArrayList<>();
    private final AtomicInteger version = new AtomicInteger();
    /** What needs no registration; null in a group of one. */
    private final RegisteredMemory anything;

    /**
     * @param threshold     bytes from which on it is worth it to use memory in place that nobody registered
     * @param readThreshold bytes of a hop from which on peers read registered memory where it lies; empty for what was
     *                      measured
     */
    public Registrations(int rank, TransportConnections connections, long threshold, Optional<Long> readThreshold) {
        this.readThreshold = readThreshold;
        this.rank = rank;
        this.connections = connections;
        this.threshold = threshold;
        this.anything = connections == null ? null : connections.allMemory();
    }

    /** @param quiet returns when no operation that was launched before touches the memory any more */
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

    /** Another number when other memory is registered: what was planned before may not hold any more. */
    public int version() {
        return version.get();
    }

    /**
     * Whether peers' devices may read what this rank sends of an operand where it lies: it is registered, and some peer
     * reaches it.
     *
     * @param hopBytes what one hop carries
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

    /** Whether an operation could use memory in place: if not, its regions are none. */
    public boolean mayHold(long hopBytes, Protocol protocol) {
        return !all.isEmpty() || hopBytes >= threshold && protocol == Protocol.SIMPLE;
    }

    /**
     * The regions of an operation that does not combine elements, {@link UserRegions#NONE} if it goes through slots; a
     * rank is {@link #NOBODY} where there is none.
     *
     * @param operand where its elements are, all of them
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
     * The regions of an operation on any memory, registered or not; {@link UserRegions#NONE} if it is not worth it, or
     * a network needs to know the memory.
     *
     * @param hopBytes what one hop carries
     */
    public UserRegions ofAny(long hopBytes, Protocol protocol, int from, int to) {
        if (hopBytes < threshold || protocol != Protocol.SIMPLE) {
            return UserRegions.NONE;
        }
        MemoryRegion received = from == NOBODY ? null : anything.with(from);
        MemoryRegion sent = to == NOBODY ? null : anything.with(to);
        return from != NOBODY && received == null || to != NOBODY && sent == null ? UserRegions.NONE
                : new UserRegions(received, sent);
    }

    private UserRegions of(Registered registered, long bytes, Protocol protocol, int from, int to) {
        MemoryRegion received = from == NOBODY ? null : registered.memory.with(from);
        MemoryRegion sent = to == NOBODY ? null : registered.memory.with(to);
        if (protocol != Protocol.SIMPLE) {
            LOG.debug("rank {}: {} registered bytes go through slots: they travel in {}", rank, bytes, protocol);
            return UserRegions.NONE;
        }
        if (from != NOBODY && received == null || to != NOBODY && sent == null) {
            if (!registered.read) {
                LOG.debug(
                        "rank {}: {} registered bytes go through slots: rank {} does not reach them; "
                                + "allocate them with the communicator's device",
                        rank, bytes, from != NOBODY && received == null ? from : to);
            }
            return UserRegions.NONE;
        }
        return new UserRegions(received, sent);
    }

    /** The communicator's proxies have stopped. */
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
     * The user's memory that an operation uses in place, as the networks on its ways know it. Null where no elements
     * arrive or leave, or where they go through slots.
     */
    public record UserRegions(@Nullable MemoryRegion received, @Nullable MemoryRegion sent) {

        /** Through slots. */
        public static final UserRegions NONE = new UserRegions(null, null);
    }
}
