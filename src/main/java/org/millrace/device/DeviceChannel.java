package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.ConnectionName;

/**
 * A channel of a communicator: this rank's neighbors, as kernels read them in {@code ncclDevChannel}, and its
 * connections with each peer. Functions find their peers only here.
 *
 * <p>
 * The host writes the neighbors before the first kernel is launched. It connects endpoints at any time. Host and
 * kernels name an endpoint by peer and index. If a kernel requests an endpoint before it is connected, the kernel waits
 * at it.
 */
public final class DeviceChannel {

    private static final int INDICES = 2;
    /**
     * Number of networks that reduce: the network of all ranks, and the network of the hosts. They have the peer
     * numbers after the last rank.
     */
    private static final int NETWORKS = 2;

    private final int rank;
    private final int ranks;
    private final int number;
    private final KernelChannel view;
    /** Memory that {@code userRanks} points to. */
    private final MemorySegment order;
    /** Endpoints by peer and index; the networks follow the ranks. */
    private final AtomicReferenceArray<DeviceEndpoint<SendPort>> sends;
    private final AtomicReferenceArray<DeviceEndpoint<ReceivePort>> receives;

    /**
     * Creates a channel in which ranks are neighbors in the order of their numbers. {@code order} has room for one int
     * per rank.
     */
    public DeviceChannel(int rank, int number, KernelChannel view, MemorySegment order) {
        this.rank = rank;
        this.ranks = (int) (order.byteSize() / Integer.BYTES);
        this.number = number;
        this.view = view;
        this.order = order;
        this.sends = new AtomicReferenceArray<>((ranks + NETWORKS) * INDICES);
        this.receives = new AtomicReferenceArray<>((ranks + NETWORKS) * INDICES);
        int[] ascending = new int[ranks];
        for (int each = 0; each < ranks; each++) {
            ascending[each] = each;
        }
        ring(ascending);
        view.tree(0, KernelChannel.NOBODY);
        view.network(KernelChannel.NOBODY);
        view.networkChain(KernelChannel.NOBODY, KernelChannel.NOBODY);
    }

    /**
     * Sets the order in which the ring passes the ranks. Each rank occurs once, and the order is the same on all ranks.
     */
    public void ring(int... all) {
        int index = 0;
        while (all[index] != rank) {
            index++;
        }
        for (int ahead = 0; ahead < ranks; ahead++) {
            order.setAtIndex(ValueLayout.JAVA_INT, ahead, all[(index + ahead) % ranks]);
        }
        view.ring(ringRank(ranks - 1), ringRank(1 % ranks), order.address(), index);
    }

    public KernelChannel view() {
        return view;
    }

    public int number() {
        return number;
    }

    /** Returns the rank that is the given number of places ahead of this one in the ring; 0 is this rank. */
    public int ringRank(int ahead) {
        return order.getAtIndex(ValueLayout.JAVA_INT, ahead);
    }

    /** Returns the number of this rank's children in the tree. */
    public int children() {
        int children = 0;
        while (children < KernelChannel.MAX_CHILDREN && view.down(children) != KernelChannel.NOBODY) {
            children++;
        }
        return children;
    }

    /** Returns this rank's end of a connection to a peer. Callable from any thread. */
    public DeviceEndpoint<SendPort> send(int peer, int index) {
        DeviceEndpoint<SendPort> endpoint = sends.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(sends, peer, index, true);
    }

    /** Returns this rank's end of a connection from a peer. Callable from any thread. */
    public DeviceEndpoint<ReceivePort> receive(int peer, int index) {
        DeviceEndpoint<ReceivePort> endpoint = receives.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(receives, peer, index, false);
    }

    /** Creates an endpoint. If several threads try, the first one's endpoint is kept and all of them return it. */
    private <P> DeviceEndpoint<P> make(AtomicReferenceArray<DeviceEndpoint<P>> endpoints, int peer, int index,
            boolean sending) {
        int at = peer * INDICES + index;
        endpoints.compareAndSet(at, null,
                new DeviceEndpoint<>(ConnectionName.ofRing(rank, peer, number, sending).toString()));
        return endpoints.getAcquire(at);
    }
}
