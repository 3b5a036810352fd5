package org.millrace.net.auto;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.millrace.net.Network;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;
import org.millrace.net.ucx.UcxNetwork;

/**
 * Which network to use. All processes of a job must choose the same, as the addresses of one are not those of another.
 */
public enum NetworkChoice {

    /**
     * Shared memory for pairs of processes that have it; for the others UCX where both have a card with RDMA, or TCP.
     */
    AUTO,
    /** Shared memory or nothing: a peer that shares none is an error. */
    SHM,
    /** TCP, on one host too. */
    SOCKET,
    /** Whatever transports UCX finds, on one host too. */
    UCX;

    /**
     * The choice with a name, for a setting: {@code auto}, {@code shm}, {@code socket} or {@code ucx}, in any case.
     *
     * @throws IllegalArgumentException if there is none of that name; it lists those that there are
     */
    public static NetworkChoice parse(String name) {
        for (NetworkChoice choice : values()) {
            if (choice.setting().equals(name.toLowerCase(Locale.ROOT))) {
                return choice;
            }
        }
        throw new IllegalArgumentException("there is no network '" + name + "'; there are "
                + Arrays.stream(values()).map(NetworkChoice::setting).collect(Collectors.joining(", ")));
    }

    private String setting() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Opens the network of this choice, with UCX as it is found. */
    public Network open(SocketOptions socket, ShmOptions shm) {
        return open(socket, shm, Optional.empty());
    }

    /** Opens the network of this choice; libucp is looked for unless it is given. */
    public Network open(SocketOptions socket, ShmOptions shm, Optional<Path> ucx) {
        return switch (this) {
            case AUTO -> {
                SocketNetwork tcp = new SocketNetwork(socket);
                yield new AutoNetwork(new ShmNetwork(shm), tcp,
                        socket.tls() == null ? UcxNetwork.withCard(ucx, tcp) : Optional.empty());
            }
            case SHM -> new ShmNetwork(shm);
            case SOCKET -> new SocketNetwork(socket);
            case UCX -> {
                if (socket.tls() != null) {
                    throw NetworkOptions.inClear(setting());
                }
                yield new UcxNetwork(ucx, new SocketNetwork(socket));
            }
        };
    }
}
