package org.millrace.transport;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.millrace.MillraceException;

/**
 * Information about a rank of a communicator ({@code ncclPeerInfo} in NCCL). The other ranks use this information to
 * choose transports.
 *
 * @param host   name of the rank's machine, for messages
 * @param offers offers of the rank's transports by the transport's name, see {@link Transport#offer}
 */
public record PeerInfo(int rank, String host, long pid, Map<String, Availability> offers) {

    /** Copies the map, so that the information is immutable. */
    public PeerInfo {
        offers = Map.copyOf(offers);
    }

    /**
     * Sends this rank's information to the other ranks, and returns the information of all ranks. All ranks must call
     * this method.
     *
     * @param allGather function that takes this rank's bytes and returns the bytes of all ranks, ordered by rank
     * @return the information that each rank sent about itself, ordered by rank
     * @throws MillraceException if the information of a rank cannot be read
     */
    public static List<PeerInfo> exchange(int rank, String host, List<? extends Transport> transports,
            Function<byte[], byte[][]> allGather) {
        byte[][] all = allGather.apply(here(rank, host, transports).encode());
        List<PeerInfo> peers = new ArrayList<>();
        for (byte[] bytes : all) {
            peers.add(decode(bytes, peers.size()));
        }
        return peers;
    }

    private static PeerInfo here(int rank, String host, List<? extends Transport> transports) {
        Map<String, Availability> offers = new LinkedHashMap<>();
        transports.forEach(transport -> offers.put(transport.name(), transport.offer()));
        return new PeerInfo(rank, host, ProcessHandle.current().pid(), offers);
    }

    /**
     * Returns the offer of a transport on this rank.
     *
     * @return the offer; a refusal if this rank has no such transport
     */
    public Availability offer(String transport) {
        return offers.getOrDefault(transport, Availability.no("there is no such transport"));
    }

    byte[] encode() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeInt(rank);
            out.writeUTF(host);
            out.writeLong(pid);
            out.writeInt(offers.size());
            for (Map.Entry<String, Availability> offer : offers.entrySet()) {
                out.writeUTF(offer.getKey());
                out.writeBoolean(offer.getValue().yes());
                out.writeUTF(offer.getValue().text());
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException("memory cannot fail to be written", impossible);
        }
        return bytes.toByteArray();
    }

    static PeerInfo decode(byte[] bytes, int rank) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            int said = in.readInt();
            String host = in.readUTF();
            long pid = in.readLong();
            Map<String, Availability> offers = new LinkedHashMap<>();
            for (int remaining = in.readInt(); remaining > 0; remaining--) {
                offers.put(in.readUTF(), new Availability(in.readBoolean(), in.readUTF()));
            }
            if (said != rank) {
                throw new IOException("it has the number of rank " + said);
            }
            return new PeerInfo(rank, host, pid, offers);
        } catch (IOException e) {
            String why = e instanceof EOFException ? "it ends after " + bytes.length + " bytes" : e.getMessage();
            throw new MillraceException("the transport information of rank " + rank + " cannot be read: " + why
                    + "; all ranks need the same release", e);
        }
    }
}
