package org.millrace.engine.bootstrap;

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
    public BootstrapListener open(RankIdentity self, int size) {
        return new BootstrapListener(listener, secret, () -> {});
    }

    @Override
    public ServerAddress find() {
        return new ServerAddress(address, secret);
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
