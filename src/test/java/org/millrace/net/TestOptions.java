package org.millrace.net;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.millrace.net.plugin.PluginOptions;
import org.millrace.net.shm.ShmOptions;
import org.millrace.net.socket.SocketOptions;

/** The default options of networks with values that only tests choose. */
public final class TestOptions {

    private TestOptions() {}

    /** Shared memory in a directory. */
    public static ShmOptions shm(Path directory) {
        return shm(directory, true);
    }

    /** Shared memory with all rings in files of a directory, as on an operating system without sealed files. */
    public static ShmOptions files(Path directory) {
        return shm(directory, false);
    }

    private static ShmOptions shm(Path directory, boolean sealed) {
        ShmOptions usual = ShmOptions.defaults();
        return new ShmOptions(directory, usual.ringBytes(), usual.pieceBytes(), usual.framesInFlight(),
                usual.connectDeadline(), usual.handshakeDeadline(), usual.singleCopy(), sealed);
    }

    /** Shared memory with other lengths of rings and pieces, in bytes. */
    public static ShmOptions ring(int ringBytes, int pieceBytes) {
        return ring(ShmOptions.defaults(), ringBytes, pieceBytes);
    }

    /** The same options with other lengths of rings and pieces, in bytes. */
    public static ShmOptions ring(ShmOptions options, int ringBytes, int pieceBytes) {
        return new ShmOptions(options.directory(), ringBytes, pieceBytes, options.framesInFlight(),
                options.connectDeadline(), options.handshakeDeadline(), options.singleCopy(), options.sealed());
    }

    /** Sockets with other buffer sizes in bytes; 0 lets the system adjust a size. */
    public static SocketOptions buffers(int sendBytes, int receiveBytes) {
        return sockets(sendBytes, receiveBytes, SocketOptions.defaults().framesInFlight());
    }

    /** Sockets with another maximum number of frames in flight. */
    public static SocketOptions frames(int framesInFlight) {
        return sockets(0, 0, framesInFlight);
    }

    private static SocketOptions sockets(int sendBytes, int receiveBytes, int framesInFlight) {
        SocketOptions usual = SocketOptions.defaults();
        return new SocketOptions(usual.streams(), usual.stripeThreshold(), sendBytes, receiveBytes, framesInFlight,
                usual.connectDeadline(), usual.handshakeDeadline(), usual.interfaces(), usual.family(),
                usual.addresses(), usual.tls(), usual.reconnectDeadline());
    }

    /** A plugin with another length of inline payloads and of pieces, in bytes. */
    public static PluginOptions messages(int inlineBytes, long pieceBytes) {
        PluginOptions usual = PluginOptions.defaults();
        return new PluginOptions(List.of(), inlineBytes, pieceBytes, usual.maxRecvs(), usual.callLimit());
    }

    /** A plugin with another time limit of a call. */
    public static PluginOptions callLimit(Duration limit) {
        PluginOptions usual = PluginOptions.defaults();
        return new PluginOptions(List.of(), usual.inlineBytes(), usual.pieceBytes(), usual.maxRecvs(), limit);
    }
}
