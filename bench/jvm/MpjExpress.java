package org.millrace.bench.jvm;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import mpi.MPI;

/**
 * Messages and all-reduces of MPJ Express over its device niodev, which has TCP connections. Rank 0 does for the
 * device what the launcher {@code mpjrun} does: it sends the addresses of all ranks to each of them.
 */
public final class MpjExpress implements Messages {

    private final float[] sent = new float[JvmRank.LARGEST_SUM / Float.BYTES];
    private final float[] received = new float[JvmRank.LARGEST_SUM / Float.BYTES];
    private final MemorySegment sentSegment = MemorySegment.ofArray(sent);
    private final MemorySegment receivedSegment = MemorySegment.ofArray(received);
    private final int peer;

    public MpjExpress(Meeting meeting) throws IOException {
        peer = 1 - meeting.rank();
        int port;
        if (meeting.rank() == 0) {
            ServerSocket server = new ServerSocket(0, meeting.size(), InetAddress.getLoopbackAddress());
            port = server.getLocalPort();
            Thread.ofPlatform().daemon().start(() -> introduce(server, meeting.size()));
            meeting.tellPort(port);
        } else {
            port = meeting.awaitPort();
        }
        MPI.Init(new String[]{Integer.toString(meeting.rank()),
            "#Number of Processes;" + meeting.size() + ";#Protocol Switch Limit;131072;#Server Name;127.0.0.1"
                    + ";#Server Port;" + port,
            "niodev"});
    }

    private static void introduce(ServerSocket server, int size) {
        try (server) {
            String[] addresses = new String[size];
            Socket[] ranks = new Socket[size];
            for (int i = 0; i < size; i++) {
                Socket socket = server.accept();
                DataInputStream in = new DataInputStream(socket.getInputStream());
                in.readUTF();
                int forWrites = in.readInt();
                int forReads = in.readInt();
                int rank = in.readInt();
                addresses[rank] = "127.0.0.1@" + forReads + "@" + forWrites + "@" + rank + "@0";
                ranks[rank] = socket;
            }
            for (Socket socket : ranks) {
                try (socket) {
                    new DataOutputStream(socket.getOutputStream())
                            .writeUTF("#Peer Information;" + String.join(";", addresses));
                }
            }
        } catch (IOException e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    @Override
    public MemorySegment sent() {
        return sentSegment;
    }

    @Override
    public MemorySegment received() {
        return receivedSegment;
    }

    @Override
    public void send(int bytes) {
        MPI.COMM_WORLD.Send(sent, 0, bytes / Float.BYTES, MPI.FLOAT, peer, 0);
    }

    @Override
    public void receive(int bytes) {
        MPI.COMM_WORLD.Recv(received, 0, bytes / Float.BYTES, MPI.FLOAT, peer, 0);
    }

    @Override
    public boolean reduces() {
        return true;
    }

    @Override
    public void allReduce(int bytes) {
        MPI.COMM_WORLD.Allreduce(sent, 0, received, 0, bytes / Float.BYTES, MPI.FLOAT, MPI.SUM);
    }

    @Override
    public void close() {
        MPI.Finalize();
    }
}
