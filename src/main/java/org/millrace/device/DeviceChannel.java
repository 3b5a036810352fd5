package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.spi.ConnectionName;

/**
 * A channel of a communicator. It contains this rank's neighbors, which kernels read in {@code ncclDevChannel}, and the
 * endpoints of the connections with each peer. Functions get their peers only from this class.
 *
 * <p>
 * The host writes the neighbors before it launches the first kernel. It can connect an endpoint at any time. Host and
 * kernels identify an endpoint by peer and index. If a kernel uses an endpoint that is not connected yet, the kernel
 * waits for the connection.
 */
public final class DeviceChannel {

    private static final int INDICES = 2;
    /**
     * Number of collective networks. One network connects all ranks, and the other network connects one rank of each
     * host. The peer numbers of the networks follow the number of the last rank.
     */
    private static final int NETWORKS = 2;

    private final int rank;
    private final int ranks;
    private final int number;
    private final KernelChannel view;
    /** Memory at the address in {@code userRanks}: the numbers of all ranks in ring order, starting with this rank. */
    private final MemorySegment order;
    /** Endpoints by peer and index. The endpoints of the collective networks follow the endpoints of the ranks. */
    private final AtomicReferenceArray<DeviceEndpoint<SendPort>> sends;
    private final AtomicReferenceArray<DeviceEndpoint<ReceivePort>> receives;

    /**
     * Creates a channel with a ring in the order of the rank numbers, and with neither a tree nor a collective network.
     *
     * @param order memory for one int per rank, which receives the ring order
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
        view.tree(0, KernelChannel.NO_RANK);
        view.network(KernelChannel.NO_RANK);
        view.networkChain(KernelChannel.NO_RANK, KernelChannel.NO_RANK);
    }

    /**
     * Sets the order of the ranks in the ring. Each rank must occur once, and the order must be the same on all ranks.
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

    /** Returns the rank that follows this rank in the ring at the given distance; this rank for distance 0. */
    public int ringRank(int ahead) {
        return order.getAtIndex(ValueLayout.JAVA_INT, ahead);
    }

    public int children() {
        int children = 0;
        while (children < KernelChannel.MAX_CHILDREN && view.down(children) != KernelChannel.NO_RANK) {
            children++;
        }
        return children;
    }

    /** Returns this rank's sending end of a connection to a peer. Callable from any thread. */
    public DeviceEndpoint<SendPort> send(int peer, int index) {
        DeviceEndpoint<SendPort> endpoint = sends.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(sends, peer, index, true);
    }

    /** Returns this rank's receiving end of a connection from a peer. Callable from any thread. */
    public DeviceEndpoint<ReceivePort> receive(int peer, int index) {
        DeviceEndpoint<ReceivePort> endpoint = receives.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(receives, peer, index, false);
    }

    /**
     * Returns an endpoint, and creates it if it does not exist. If several threads call this method at the same time,
     * all of them get the endpoint of the first thread.
     */
    private <P> DeviceEndpoint<P> make(AtomicReferenceArray<DeviceEndpoint<P>> endpoints, int peer, int index,
            boolean sending) {
        int at = peer * INDICES + index;
        endpoints.compareAndSet(at, null,
                new DeviceEndpoint<>(ConnectionName.ofRing(rank, peer, number, sending).toString()));
        return endpoints.getAcquire(at);
    }
}
