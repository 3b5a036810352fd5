package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.device.ChannelTask;
import org.millrace.device.ChunkShape;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.DeviceCommunicator;
import org.millrace.device.FunctionNumber;
import org.millrace.device.FunctionTable;
import org.millrace.engine.Attendance.Meeting;
import org.millrace.engine.PlannedOperation.PlannedCollective;
import org.millrace.engine.PlannedOperation.PlannedTransfer;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.engine.PlannedOperation.Share;
import org.millrace.engine.Registrations.UserRegions;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Announces to the proxies the data that the next kernel will send and receive. The kernel's functions determine this
 * data. Called by one thread at a time, in the order of the kernel launches.
 */
final class Announcer {

    private static final Logger LOG = LogManager.getLogger(Announcer.class);

    private final DeviceCommunicator device;
    private final Connectors connectors;
    private final Routes routes;
    private final LaunchCounts launched;
    private final OperationTrace trace;
    private final Function<PlannedCollective, List<Share>> findShares = this::shares;

    public Announcer(DeviceCommunicator device, Connectors connectors, Routes routes, LaunchCounts launched,
            OperationTrace trace) {
        this.device = device;
        this.connectors = connectors;
        this.routes = routes;
        this.launched = launched;
        this.trace = trace;
    }

    /**
     * Announces a collective to all connectors of collectives, including connectors that move no data of this
     * collective. Returns the identity of the operation.
     */
    OperationId announce(PlannedCollective planned) {
        OperationId id = new OperationId(launched.collective(), planned.signature(), planned.asked().count());
        trace.collective(planned, id);
        int number = planned.function();
        if (FunctionNumber.algorithm(number) != CollectiveFunction.Algorithm.LOCAL) {
            routes.collective(FunctionNumber.algorithm(number), id,
                    (planned.work().flags() & CollectiveWork.REGISTERED) != 0);
        }
        CollectiveWork work = planned.work();
        if (LOG.isTraceEnabled()) {
            LOG.trace("rank {}: {}: {}, {}, {} channels", device.rank(), id, FunctionNumber.algorithm(number),
                    FunctionNumber.protocol(number), work.channelHigh() + 1);
        }
        List<Share> shares = planned.shares(findShares);
        ProxyOp part = null;
        ProxyOp run = null;
        // A loop by index does not allocate an iterator. Each operation runs this loop.
        for (int i = 0; i < shares.size(); i++) {
            Share share = shares.get(i);
            if (share.part() != part) {
                part = share.part();
                run = part.numbered(id.number());
            }
            share.connector().announce(run);
        }
        connectors.announceWithout(id.number(), id.signature(), id.count());
        return id;
    }

    private List<Share> shares(PlannedCollective planned) {
        OperationId any = new OperationId(0, planned.signature(), planned.asked().count());
        FunctionTable.DeviceFunction function = FunctionTable.STANDARD.of(planned.function());
        CollectiveWork work = planned.work();
        List<Share> shares = new ArrayList<>();
        for (int channel = 0; channel <= work.channelHigh(); channel++) {
            for (ChannelTask task : function.tasks(planned.function(), work.segment(), device,
                    device.channel(channel))) {
                add(task, channel, any, planned, shares);
            }
        }
        return shares;
    }

    private void add(ChannelTask task, int channel, OperationId id, PlannedCollective planned, List<Share> shares) {
        UserRegions regions = planned.regions();
        for (int peer : task.from()) {
            add(connectors.receive(peer, channel, task.index()),
                    id.part(task.schedule().chunksReceived(), task.shape(), regions.received()), shares);
        }
        for (int peer : task.to()) {
            ProxyOp part = id.part(task.schedule().chunksSent(), task.shape(), regions.sent());
            add(connectors.send(peer, channel, task.index()),
                    peer < device.ranks() ? part : part.asking(windows(channel, planned)), shares);
        }
    }

    /**
     * Adds the share of one connector. If {@code part} equals the part of the previous share, both shares refer to one
     * object. Each run then creates only one numbered copy for both shares.
     */
    private static void add(Connector<?> connector, ProxyOp part, List<Share> shares) {
        ProxyOp before = shares.isEmpty() ? null : shares.getLast().part();
        shares.add(new Share(connector, part.equals(before) ? before : part));
    }

    /** Returns the description of a channel's requests to a network that reduces data. */
    private ProxyOp.CollNetOp windows(int channel, PlannedCollective planned) {
        int number = planned.function();
        return FunctionTable.STANDARD.collective(FunctionNumber.operation(number), FunctionNumber.algorithm(number))
                .network(number, planned.work(), device, channel);
    }

    /**
     * Announces a transfer and returns its identity. A transfer of a rank to itself has no tasks, and no proxy receives
     * an announcement for it.
     */
    TransferId announce(PlannedTransfer planned) {
        TransferId id = new TransferId(planned, number(planned.send()), number(planned.receive()));
        trace.transfer(planned, id);
        List<Share> shares = planned.shares();
        if (shares.isEmpty()) {
            shares.addAll(shares(planned));
        }
        for (int i = 0; i < shares.size(); i++) {
            Share share = shares.get(i);
            share.connector().announce(share.part().numbered(share.connector().nextTransfer()));
        }
        if (LOG.isTraceEnabled()) {
            LOG.trace("rank {}: {}, {} connections", device.rank(), id, shares.size());
        }
        return id;
    }

    private List<Share> shares(PlannedTransfer planned) {
        List<Share> shares = new ArrayList<>();
        PointToPointWork work = planned.work();
        FunctionTable.DeviceFunction function = FunctionTable.STANDARD.of(TransferPlanner.FUNCTION);
        int parts = Math.max(work.sendChannels(), work.receiveChannels());
        for (int part = 0; part < parts; part++) {
            int channel = work.channelBase() + part & work.channels() - 1;
            for (ChannelTask task : function.tasks(TransferPlanner.FUNCTION, work.segment(), device,
                    device.channel(channel))) {
                if (task.to().length > 0) {
                    shares.add(share(planned.send(), connectors.send(task.to()[0], channel, task.index()),
                            task.schedule().chunksSent(), task));
                } else {
                    shares.add(share(planned.receive(), connectors.receive(task.from()[0], channel, task.index()),
                            task.schedule().chunksReceived(), task));
                }
            }
        }
        return shares;
    }

    private long number(@Nullable SendOrReceive transfer) {
        return transfer == null || transfer.peer() == device.rank() ? TransferId.NONE
                : launched.transfer(transfer.peer(), transfer.sends());
    }

    /**
     * Identity of one run of a plan's transfers. {@code send} is the ordinal of the send among all sends to the peer,
     * from 0. {@code receive} is the ordinal of the receive among all receives from the peer, from 0. If the run has no
     * send to another rank, {@code send} is {@link #NONE}. If the run has no receive from another rank, {@code receive}
     * is {@link #NONE}.
     */
    record TransferId(PlannedTransfer planned, long send, long receive) implements Meeting {

        static final long NONE = -1;

        @Override
        public void attend(Sink sink) {
            if (send != NONE) {
                sink.transfer(planned.send().peer(), true, send);
            }
            if (receive != NONE) {
                sink.transfer(planned.receive().peer(), false, receive);
            }
        }

        @Override
        public String toString() {
            return planned.toString();
        }
    }

    private static Share share(SendOrReceive transfer, Connector<?> connector, long chunks, ChannelTask task) {
        OperationId any = new OperationId(0,
                OperationSignature.pack(Operation.SEND_RECEIVE, transfer.type(), ReduceOp.SUM, 0), transfer.count());
        return new Share(connector, any.part(chunks, task.shape(),
                transfer.sends() ? transfer.regions().sent() : transfer.regions().received()));
    }

    /**
     * Properties that must be equal on all ranks that run one operation together. All ranks count their operations in
     * the same way.
     */
    record OperationId(long number, long signature, long count) implements Meeting {

        @Override
        public void attend(Sink sink) {
            sink.collective(number);
        }

        Operation operation() {
            return OperationSignature.operation(signature);
        }

        /** @param user memory that the device refers to; null if the data is copied through slots */
        ProxyOp part(long chunks, ChunkShape shape, @Nullable MemoryRegion user) {
            return new ProxyOp(number, signature, count, chunks * shape.chunkSteps(), shape.chunkSteps(),
                    shape.sliceSteps(), shape.protocol(), user);
        }

        @Override
        public String toString() {
            return OperationSignature.describe(signature, number, count);
        }
    }
}
