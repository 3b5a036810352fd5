package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.bootstrap.Rendezvous.ServerAddress;
import org.millrace.net.connection.TlsIdentity;
import org.millrace.net.socket.Interfaces;

/**
 * Divides the ranks of one group into new groups. All ranks exchange their colors and keys. The first rank of each new
 * group listens and sends its address to the other ranks.
 */
final class Split {

    private final ControlPlane from;
    private final List<Integer> members;

    private Split(ControlPlane from, List<Integer> members) {
        this.from = from;
        this.members = members;
    }

    static @Nullable ControlPlane agree(ControlPlane from, int color, int key) {
        byte[][] wishes =
                from.gather(Call.SPLIT, ByteBuffer.allocate(2 * Integer.BYTES).putInt(color).putInt(key).array());
        int[] colors = new int[wishes.length];
        int[] keys = new int[wishes.length];
        for (int rank = 0; rank < wishes.length; rank++) {
            RankLetter wish = new RankLetter(rank, "its new group", wishes[rank]);
            colors[rank] = wish.number();
            keys[rank] = wish.number();
            wish.end();
        }
        List<Integer> members = IntStream.range(0, wishes.length)
                .filter(rank -> colors[rank] == color)
                .boxed()
                // The sort is stable, so ranks with equal keys keep their previous order.
                .sorted(Comparator.comparingInt(rank -> keys[rank]))
                .toList();
        if (color < 0 || members.size() == 1) {
            from.gather(Call.SPLIT, new byte[0]);
            return color < 0 ? null
                    : ControlPlane.join(new SplitRendezvous(null, null, null, null), 0, 1, from.options());
        }
        return new Split(from, members).meet();
    }

    private ControlPlane meet() {
        int rank = members.indexOf(from.rank());
        try (ServerSocketChannel listener =
                rank == 0 ? Rendezvous.bind(new InetSocketAddress(from.address(), 0), "split", "") : null) {
            byte[] invitation =
                    from.gather(Call.SPLIT, rank == 0 ? invitation(listener) : new byte[0])[members.getFirst()];
            SplitRendezvous meeting = SplitRendezvous.of(members.getFirst(), invitation, listener, from);
            return ControlPlane.join(meeting, rank, members.size(), from.options().ofOneRun());
        } catch (IOException e) {
            throw new MillraceException("rank " + from.rank() + " cannot listen for the " + (members.size() - 1)
                    + " others of its new group: " + e.getMessage(), e);
        }
    }

    /** Returns an invitation with a new secret, in the format that {@link SplitRendezvous#of} reads. */
    static byte[] invitation(ServerSocketChannel listener) throws IOException {
        InetSocketAddress address = (InetSocketAddress) listener.getLocalAddress();
        return new LetterWriter().number(address.getPort())
                .sized(address.getAddress().getAddress())
                .text(Secret.randomHex())
                .bytes();
    }

    /**
     * Rendezvous of the ranks of a new group. The old group has already distributed the address.
     *
     * @param listener listener of rank 0; null on all other ranks
     * @param address  address of rank 0's listener, to which the other ranks connect
     */
    record SplitRendezvous(@Nullable ServerSocketChannel listener, @Nullable InetSocketAddress address,
            @Nullable Secret secret, @Nullable TlsIdentity tls) implements Rendezvous {

        /** Reads an invitation of a rank of the group {@code from}. */
        static SplitRendezvous of(int rank, byte[] bytes, @Nullable ServerSocketChannel listener, ControlPlane from) {
            RankLetter invitation = new RankLetter(rank, "where its new group meets", bytes);
            int port = invitation.number("its port", 1, 0xFFFF);
            byte[] host = invitation.sized("an internet address");
            String secret = invitation.text("a secret");
            invitation.end();
            try {
                return new SplitRendezvous(listener,
                        Interfaces.reachable(new InetSocketAddress(InetAddress.getByAddress(host), port),
                                () -> List.of(from.address())),
                        Secret.of(secret, from.options().secret()), from.options().tls());
            } catch (UnknownHostException e) {
                throw invitation.damaged("an internet address of " + host.length + " bytes");
            }
        }

        @Override
        public BootstrapListener open(RankIdentity self, int size) {
            return new BootstrapListener(listener, address.getAddress(), secret, tls, () -> {});
        }

        @Override
        public ServerAddress find(int attempt) {
            return new ServerAddress(address, secret, tls, "");
        }

        @Override
        public boolean isListening() {
            return true;
        }

        @Override
        public String toString() {
            return "split:" + address.getAddress().getHostAddress() + ':' + address.getPort();
        }
    }
}
