package org.millrace.engine;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.KernelChannel;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.SharedReceiver;
import org.millrace.proxy.SharedSender;
import org.millrace.transport.EndRequest;

/**
 * Network connections that several channels share. Each network connection carries the collectives of up to
 * {@value SharedSender#MEMBERS} channels between two ranks, in one direction. Sharing reduces the number of connections
 * that are open and polled. The first request for a connection of one of these channels starts the network connection.
 */
final class GroupedConnections {

    /** Index of shared network connections in their keys. All other connections have smaller indexes. */
    private static final int INDEX = 2;

    private record Place(int peer, int group) {
    }

    private final Network network;
    private final Listener here;
    private final Map<Place, Shared<FrameSender, SharedSender>> senders = new HashMap<>();
    private final Map<Place, Shared<FrameReceiver, SharedReceiver>> receivers = new HashMap<>();

    GroupedConnections(Network network, Listener here) {
        this.network = network;
        this.here = here;
    }

    /** Returns whether a connection uses a shared network connection. The result is the same at both ends. */
    static boolean has(EndRequest request) {
        return request.settings().groupedChannels() > 0 && request.index() == KernelChannel.COLLECTIVE;
    }

    synchronized Pending<FrameSender> send(EndRequest request, byte[] address, OperationQueue queue) {
        Shared<FrameSender, SharedSender> shared = senders.computeIfAbsent(place(request),
                _ -> new Shared<>(() -> network.connect(address, key(request, request.here().rank())),
                        sender -> new SharedSender(sender, members(request))));
        return shared.member(group -> group.member(member(request), queue));
    }

    synchronized Pending<FrameReceiver> receive(EndRequest request) {
        Shared<FrameReceiver, SharedReceiver> shared = receivers.computeIfAbsent(place(request),
                _ -> new Shared<>(() -> here.expect(key(request, request.there().rank())),
                        receiver -> new SharedReceiver(receiver, members(request))));
        return shared.member(group -> group.member(member(request)));
    }

    private static Place place(EndRequest request) {
        return new Place(request.there().rank(), request.channel() / SharedSender.MEMBERS);
    }

    private static int member(EndRequest request) {
        return request.channel() % SharedSender.MEMBERS;
    }

    private static int members(EndRequest request) {
        int first = request.channel() - member(request);
        return Math.min(SharedSender.MEMBERS, request.settings().groupedChannels() - first);
    }

    private static ConnectionKey key(EndRequest request, int sendingRank) {
        return NetTransport.key(INDEX, request.channel() / SharedSender.MEMBERS, sendingRank);
    }

    /** A network connection that channels share, pending or established. */
    private static final class Shared<F, G> {

        private final Pending<F> pending;
        private final Function<F, G> toGroup;
        private @Nullable G group;
        private boolean givenUp;

        Shared(Supplier<Pending<F>> begin, Function<F, G> toGroup) {
            this.pending = begin.get();
            this.toGroup = toGroup;
        }

        Pending<F> member(Function<G, F> toMember) {
            return new Pending<>() {
                @Override
                public @Nullable F poll() {
                    G made = made();
                    return made == null ? null : toMember.apply(made);
                }

                @Override
                public String describe() {
                    return pending.describe();
                }

                @Override
                public void close() {
                    giveUp();
                }
            };
        }

        private synchronized @Nullable G made() {
            if (group == null) {
                F end = pending.poll();
                group = end == null ? null : toGroup.apply(end);
            }
            return group;
        }

        /**
         * Abandons a pending connection for all members. A communicator fails if one of its connections is not made, so
         * no member needs this connection any longer.
         */
        private synchronized void giveUp() {
            if (group == null && !givenUp) {
                givenUp = true;
                pending.close();
            }
        }
    }
}
