package org.millrace.device;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.millrace.abi.KernelChannel;
import org.millrace.proxy.ConnectionName;

/**
 * A channel of a communicator: this rank's neighbours, as kernels read them in {@code ncclDevChannel}, and its
 * connections with each peer. Functions find their peers here and nowhere else.
 *
 * <p>
 * The host writes the neighbours before the first kernel is launched. It connects endpoints at any time, and both sides
 * name them by peer and index: one that a kernel asks for before it is connected is a place to wait at.
 */
public final class DeviceChannel {

    private static final int INDICES = 2;
    /** Networks that reduce, which are peers behind the ranks: that of all ranks, and that of the hosts. */
    private static final int NETWORKS = 2;

    private final int rank;
    private final int ranks;
    private final int number;
    private final KernelChannel view;
    /** Where {@code userRanks} points to. */
    private final MemorySegment order;
    /** By peer, networks behind the ranks, and index. */
    private final AtomicReferenceArray<DeviceEndpoint<SendPort>> sends;
    private final AtomicReferenceArray<DeviceEndpoint<ReceivePort>> receives;

    /**
     * A channel in which ranks are neighbours in the order of their numbers; {@code order} has room for an int of each.
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

    /** Says in which order the ring passes the ranks: every rank once, the same on all ranks. */
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

    /** The rank that is so many places ahead of this one in the ring; 0 is this one. */
    public int ringRank(int ahead) {
        return order.getAtIndex(ValueLayout.JAVA_INT, ahead);
    }

    /** How many ranks are below this one in the tree. */
    public int children() {
        int children = 0;
        while (children < KernelChannel.MAX_CHILDREN && view.down(children) != KernelChannel.NOBODY) {
            children++;
        }
        return children;
    }

    /** This rank's end of a connection to a peer. Any thread. */
    public DeviceEndpoint<SendPort> send(int peer, int index) {
        DeviceEndpoint<SendPort> endpoint = sends.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(sends, peer, index, true);
    }

    /** This rank's end of a connection from a peer. Any thread. */
    public DeviceEndpoint<ReceivePort> receive(int peer, int index) {
        DeviceEndpoint<ReceivePort> endpoint = receives.getAcquire(peer * INDICES + index);
        return endpoint != null ? endpoint : make(receives, peer, index, false);
    }

    /** The thread that comes first makes it, and the others find it. */
    private <P> DeviceEndpoint<P> make(AtomicReferenceArray<DeviceEndpoint<P>> endpoints, int peer, int index,
            boolean sending) {
        int at = peer * INDICES + index;
        endpoints.compareAndSet(at, null,
                new DeviceEndpoint<>(ConnectionName.ofRing(rank, peer, number, sending).toString()));
        return endpoints.getAcquire(at);
    }
}
