package org.millrace.engine.rendezvous;

import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;

/**
 * Ranks of one group who meet in another: where, the group they come from has told them.
 *
 * @param listener where rank 0 listens already; null on every other rank
 * @param address  the same, for the others
 * @param secret   what they must know
 */
record SplitRendezvous(ServerSocketChannel listener, InetSocketAddress address, Secret secret) implements Rendezvous {

    @Override
    public Meeting open(Identity self, int size) {
        return new Meeting(listener, secret, () -> {});
    }

    @Override
    public Place find() {
        return new Place(address, secret);
    }

    @Override
    public boolean mayBeStale() {
        return false;
    }

    @Override
    public String toString() {
        return "split:" + address.getAddress().getHostAddress() + ':' + address.getPort();
    }
}
