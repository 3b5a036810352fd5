package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The two ends of a rail.
 *
 * @param local  the address that streams are bound to; null to leave it to the system
 * @param remote where a listener is
 */
record RailAddresses(@Nullable InetAddress local, InetSocketAddress remote) {

    /**
     * Pairs addresses: as many rails as the side with more addresses has, remote address i with local address i, the
     * shorter list from its beginning again. Where address i is not in the remote one's subnet, the next one that is
     * goes before it.
     *
     * @param locals  ours; empty to leave them to the system
     * @param remotes the listener's, at least one
     */
    static List<RailAddresses> pair(List<LocalAddress> locals, List<InetSocketAddress> remotes) {
        List<RailAddresses> rails = new ArrayList<>();
        int count = Math.min(Math.max(locals.size(), remotes.size()), SocketOptions.MAX_RAILS);
        for (int rail = 0; rail < count; rail++) {
            InetSocketAddress remote = remotes.get(rail % remotes.size());
            rails.add(new RailAddresses(localFor(locals, rail, remote.getAddress()), remote));
        }
        return rails;
    }

    private static @Nullable InetAddress localFor(List<LocalAddress> locals, int rail, InetAddress remote) {
        InetAddress sameFamily = null;
        for (int i = 0; i < locals.size(); i++) {
            LocalAddress local = locals.get((rail + i) % locals.size());
            if (local.isFamilyOf(remote)) {
                if (local.isSubnetOf(remote)) {
                    return local.address();
                }
                sameFamily = sameFamily == null ? local.address() : sameFamily;
            }
        }
        return sameFamily;
    }

    @Override
    public String toString() {
        return (local == null ? "" : local.getHostAddress() + " to ") + OutgoingStream.name(remote);
    }
}
