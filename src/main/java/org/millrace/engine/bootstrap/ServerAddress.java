package org.millrace.engine.bootstrap;

import java.net.InetSocketAddress;

/**
 * Where the other ranks find rank 0.
 *
 * @param address resolved
 * @param secret  what both sides must know
 */
record ServerAddress(InetSocketAddress address, Secret secret) {

    @Override
    public String toString() {
        return address.getAddress().getHostAddress() + ':' + address.getPort();
    }
}
