package org.millrace.engine.connect;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;
import org.millrace.device.arithmetic.ElementKernels;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.RemoteFailure;
import org.millrace.engine.options.EngineOptions;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.transport.collnet.Aggregator;
import org.millrace.transport.collnet.AggregatorClient;

/** Connects every rank with the aggregator, which rank 0 runs on a thread of its own. */
final class AggregatorSetup {

    /** No connection of a transport has such a key. */
    private static final long TO_AGGREGATOR = 1L << 40;
    private static final long FROM_AGGREGATOR = TO_AGGREGATOR + 1;
    private static final long POLL_NANOS = 50_000;

    private final ControlPlane control;
    private final EngineOptions options;
    private final Network network;
    private final Listener here;
    private final byte[][] addresses;
    private final CommunicatorFailure failure;
    private final EngineResources resources;
    private final List<Making<?>> making = new ArrayList<>();

    /** A network's end in the making, and then the end. */
    private static final class Making<F extends AutoCloseable> implements AutoCloseable {
        private final Pending<F> pending;
        private F end;

        Making(Pending<F> pending) {
            this.pending = pending;
        }

        boolean isMade() {
            end = end == null ? pending.poll() : end;
            return end != null;
        }

        @Override
        public void close() {
            pending.close();
        }
    }

    AggregatorSetup(ControlPlane control, EngineOptions options, Network network, Listener here, byte[][] addresses,
            CommunicatorFailure failure, EngineResources resources) {
        this.control = control;
        this.options = options;
        this.network = network;
        this.here = here;
        this.addresses = addresses;
        this.failure = failure;
        this.resources = resources;
    }

    /** Ends that were made when another fails are closed with the network. */
    AggregatorClient connect() {
        try {
            int rank = control.rank();
            Making<FrameReceiver> receiver = add(here.expect(new ConnectionKey(FROM_AGGREGATOR, rank)));
            Making<FrameSender> sender = add(network.connect(addresses[0], new ConnectionKey(TO_AGGREGATOR, rank)));
            List<Making<FrameReceiver>> receivers = new ArrayList<>();
            List<Making<FrameSender>> senders = new ArrayList<>();
            for (int other = 0; rank == 0 && other < addresses.length; other++) {
                receivers.add(add(here.expect(new ConnectionKey(TO_AGGREGATOR, other))));
                senders.add(add(network.connect(addresses[other], new ConnectionKey(FROM_AGGREGATOR, other))));
            }
            await();
            if (rank == 0) {
                start(receivers.stream().map(each -> each.end).toList(),
                        senders.stream().map(each -> each.end).toList());
            }
            return new AggregatorClient(sender.end, receiver.end);
        } finally {
            making.forEach(Making::close);
        }
    }

    private <F extends AutoCloseable> Making<F> add(Pending<F> pending) {
        Making<F> made = new Making<>(pending);
        making.add(made);
        return made;
    }

    private void await() {
        long deadline = System.nanoTime() + options.connectDeadline().toNanos();
        while (true) {
            int missing = 0;
            for (Making<?> each : making) {
                missing += each.isMade() ? 0 : 1;
            }
            if (missing == 0) {
                return;
            }
            RemoteFailure remote = control.failure();
            if (remote != null) {
                throw new MillraceException(
                        "rank " + control.rank() + " gives up connecting with the aggregator: " + remote.message());
            }
            if (deadline - System.nanoTime() < 0) {
                throw new MillraceException("rank " + control.rank() + ": " + missing + " of " + making.size()
                        + " connections with the aggregator" + " were not made within "
                        + options.connectDeadline().toMillis() + " ms (MILLRACE_CONNECT_DEADLINE)");
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    /** Another rank may be about to say why a connection was lost. */
    private void failed(Throwable thrown) {
        if (thrown instanceof ConnectionException) {
            failure.suspect(thrown);
        } else {
            failure.fail(thrown);
        }
    }

    private void start(List<FrameReceiver> receivers, List<FrameSender> senders) {
        int ranks = addresses.length;
        Aggregator aggregator = resources
                .add(new Aggregator(network, receivers, senders, options.bufferBytes() / ConnectionLayout.SLOTS,
                        (type, op, from, fromOffset, into, intoOffset, count) -> ElementKernels.of(type, op, ranks)
                                .reduce(from, fromOffset, into, intoOffset, into, intoOffset, count, false),
                        this::failed));
        resources.add(AgentRunner.start(aggregator,
                IdleProfile.rank(options.spins(), options.yields(), options.maxParkNanos())));
    }
}
