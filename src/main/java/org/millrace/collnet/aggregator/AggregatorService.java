package org.millrace.collnet.aggregator;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pending;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.handshake.SocketListener;
import org.millrace.net.socket.stream.SocketOptions;

/**
 * An aggregator that serves any group whose ranks know its secret: waits for all ranks of a group, connects with them,
 * and reduces for them on a thread of the group's own. What goes wrong in a group is that group's matter.
 */
public final class AggregatorService implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(AggregatorService.class);
    /** Groups that wait for ranks: a stranger must not fill the memory. */
    private static final int MOST_ASSEMBLIES = 256;

    private final SocketNetwork network;
    private final SocketListener here;
    private final Duration patience;
    private final Supplier<IdleStrategy> idle;
    private final AgentRunner runner;
    /** All below: the thread of the runner alone. */
    private final List<Visitor> visitors = new ArrayList<>();
    private final Map<Long, Assembly> assemblies = new HashMap<>();
    private final List<Running> groups = new ArrayList<>();
    private volatile int running;
    private volatile long served;

    private record Running(AggregatorGroup group, AgentRunner runner) {

        void close() {
            runner.close();
            group.close();
        }
    }

    /**
     * Opens the service, which begins at once.
     *
     * @param where    to listen; port 0 for any
     * @param secret   what ranks have to know; empty for nothing
     * @param patience how long the ranks of a group have to come
     * @param idle     what threads do without work
     */
    public AggregatorService(SocketOptions options, InetSocketAddress where, String secret, Duration patience,
            Supplier<IdleStrategy> idle) {
        this.patience = patience;
        this.idle = idle;
        network = new SocketNetwork(options);
        try {
            here = network.listen(where, AggregatorFrame.secret(secret));
        } catch (RuntimeException | Error failure) {
            network.close();
            throw failure;
        }
        runner = AgentRunner.start(new Door(), idle.get());
    }

    /** {@return where it listens} */
    public InetSocketAddress where() {
        return here.where();
    }

    /** {@return how many groups it reduces for now} */
    public int groups() {
        return running;
    }

    /** {@return how many groups it has reduced for so far, those of now too} */
    public long served() {
        return served;
    }

    /** Ends all groups: their ranks are told that the connection is lost. */
    @Override
    public void close() {
        runner.close();
        visitors.forEach(Visitor::close);
        assemblies.values().forEach(Assembly::close);
        groups.forEach(Running::close);
        groups.clear();
        network.close();
    }

    /** Lets ranks in, and groups begin and end. */
    private final class Door implements Agent {

        @Override
        public String name() {
            return "aggregator";
        }

        @Override
        public int doWork() {
            int work = 0;
            for (ConnectionKey key : here.unexpected()) {
                visitors.add(new Visitor(key, here.expect(key)));
                work++;
            }
            for (Iterator<Visitor> each = visitors.iterator(); each.hasNext();) {
                Visitor visitor = each.next();
                try {
                    if (visitor.isIn()) {
                        each.remove();
                        work++;
                    }
                } catch (MillraceException refused) {
                    LOG.warn("a rank was turned away: {}", refused.getMessage());
                    visitor.close();
                    each.remove();
                }
            }
            for (Iterator<Assembly> each = assemblies.values().iterator(); each.hasNext();) {
                Assembly assembly = each.next();
                try {
                    if (assembly.isComplete()) {
                        begin(assembly);
                        each.remove();
                        work++;
                    }
                } catch (MillraceException lost) {
                    LOG.warn("{} does not begin: {}", assembly, lost.getMessage());
                    assembly.close();
                    each.remove();
                }
            }
            for (Iterator<Running> each = groups.iterator(); each.hasNext();) {
                Running group = each.next();
                if (group.group.isOver()) {
                    group.close();
                    each.remove();
                    work++;
                }
            }
            running = groups.size();
            return work;
        }

        private void begin(Assembly assembly) {
            AggregatorGroup group =
                    new AggregatorGroup(assembly.toString(), network, assembly.senders, assembly.receivers);
            groups.add(new Running(group, AgentRunner.start(group, idle.get())));
            served++; // this thread alone writes it
            LOG.info("{} begins", assembly);
        }

        @Override
        public void onFailure(Throwable failure) {
            LOG.error("the aggregator lets no more ranks in", failure);
        }
    }

    /** A rank that has not said which it is. */
    private final class Visitor implements AutoCloseable {

        private final ConnectionKey key;
        private final Pending<FrameReceiver> pending;
        private final Arena arena = Arena.ofShared();
        private final MemoryRegion address = network.register(arena.allocate(Listener.ADDRESS_BYTES, Long.BYTES));
        private final long end = System.nanoTime() + patience.toNanos();
        private @Nullable FrameReceiver receiver;
        private int ranks;
        private int rank;
        private int aggregator;

        Visitor(ConnectionKey key, Pending<FrameReceiver> pending) {
            this.key = key;
            this.pending = pending;
        }

        /** Whether it has its place in a group. */
        boolean isIn() {
            if (System.nanoTime() - end > 0) {
                throw new ConnectionException("it did not say which rank it is within " + patience.toSeconds() + " s");
            }
            if (receiver == null) {
                receiver = pending.poll();
                return false;
            }
            receiver.progress();
            FrameHeader hello = ranks == 0 ? receiver.poll() : null;
            if (hello != null) {
                read(hello);
                receiver.accept(address, 0);
            }
            if (ranks == 0 || receiver.framesCompleted() == 0) {
                return false;
            }
            Assembly assembly = assemblies.get(key.high());
            if (assembly == null) {
                if (assemblies.size() == MOST_ASSEMBLIES) {
                    throw new ConnectionException(MOST_ASSEMBLIES + " groups wait for ranks already");
                }
                assembly = new Assembly(key.high(), ranks);
                assemblies.put(key.high(), assembly);
            }
            assembly.add(this, address.segment().toArray(ValueLayout.JAVA_BYTE));
            address.close();
            arena.close();
            return true;
        }

        private void read(FrameHeader hello) {
            long said = hello.word(1);
            long self = hello.word(2);
            long which = hello.word(3);
            if (hello.word(0) != AggregatorFrame.HELLO || said < 1 || said > AggregatorFrame.MOST_RANKS || self < 0
                    || self >= said || which < 0 || which > AggregatorFrame.MOST_RANKS || key.low() != self
                    || hello.payloadBytes() != Listener.ADDRESS_BYTES) {
                throw new ConnectionException(
                        receiver + " does not say which rank it is: use the same Millrace on all hosts");
            }
            ranks = (int) said;
            rank = (int) self;
            aggregator = (int) which;
        }

        @Override
        public void close() {
            if (receiver != null) {
                receiver.close();
            }
            pending.close();
            address.close();
            arena.close();
        }
    }

    /** A group that waits for ranks. */
    private final class Assembly implements AutoCloseable {

        private final long number;
        private final FrameReceiver[] receivers;
        private final FrameSender[] senders;
        private final @Nullable Pending<FrameSender>[] connecting;
        private final long end = System.nanoTime() + patience.toNanos();

        @SuppressWarnings({"unchecked", "rawtypes"})
        Assembly(long number, int ranks) {
            this.number = number;
            receivers = new FrameReceiver[ranks];
            senders = new FrameSender[ranks];
            connecting = new Pending[ranks];
        }

        void add(Visitor visitor, byte[] address) {
            if (visitor.ranks != receivers.length || receivers[visitor.rank] != null) {
                throw new ConnectionException(this + " has no place for rank " + visitor.rank + " of " + visitor.ranks);
            }
            connecting[visitor.rank] =
                    network.connect(address, AggregatorFrame.toRank(number, visitor.rank, visitor.aggregator));
            receivers[visitor.rank] = visitor.receiver;
        }

        boolean isComplete() {
            boolean complete = true;
            for (int rank = 0; rank < senders.length; rank++) {
                if (senders[rank] == null && connecting[rank] != null) {
                    senders[rank] = connecting[rank].poll();
                }
                complete &= senders[rank] != null;
            }
            if (!complete && System.nanoTime() - end > 0) {
                throw new ConnectionException("not all ranks have come within " + patience.toSeconds() + " s");
            }
            return complete;
        }

        @Override
        public void close() {
            for (int rank = 0; rank < senders.length; rank++) {
                for (AutoCloseable each : new AutoCloseable[] {connecting[rank], senders[rank], receivers[rank]}) {
                    try {
                        if (each != null) {
                            each.close();
                        }
                    } catch (Exception e) {
                        LOG.debug("{}: an end could not be closed", this, e);
                    }
                }
            }
        }

        @Override
        public String toString() {
            return "group " + Long.toHexString(number) + " of " + receivers.length + " ranks";
        }
    }
}
