package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.MillraceException;
import org.millrace.engine.TransportConnections.TransportChoice;
import org.millrace.net.auto.NetworkOptions;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

class TransportChoiceTest {

    @TempDir
    Path directory;

    /** A transport that returns configured answers, and creates no connection. */
    private record Said(String name, Availability offer, Availability canConnect) implements Transport {

        @Override
        public Availability canConnect(PeerInfo here, PeerInfo there) {
            return canConnect;
        }

        @Override
        public TransportEnd send(EndRequest request) {
            throw new AssertionError("not asked for");
        }

        @Override
        public TransportEnd receive(EndRequest request) {
            throw new AssertionError("not asked for");
        }
    }

    private static final Availability YES = Availability.yes("");
    private static final Transport GOOD = new Said("GOOD", YES, YES);
    private static final Transport FAR = new Said("FAR", YES, Availability.no("other planet"));
    private static final Transport OFF = new Said("OFF", Availability.no("switched off"), YES);

    private static PeerInfo peer(int rank, Transport... transports) {
        return PeerInfo.exchange(rank, "host", List.of(transports), bytes -> {
            byte[][] all = new byte[rank + 1][];
            for (int other = 0; other <= rank; other++) {
                all[other] = bytes.clone();
                all[other][3] = (byte) other;
            }
            return all;
        }).get(rank);
    }

    @Test
    void theFirstThatCanIsTakenWithTheReasonsOfThoseBefore() {
        List<Transport> all = List.of(OFF, FAR, GOOD);
        PeerInfo here = peer(0, OFF, FAR, GOOD);
        PeerInfo there = peer(1, OFF, FAR, GOOD);
        assertEquals("GOOD (OFF: switched off; FAR: other planet)", TransportChoice.of(all, here, there).toString());
        assertEquals("GOOD", TransportChoice.of(List.of(GOOD), here, there).toString());
    }

    @Test
    void whatOnlyOneRankHasIsNotTaken() {
        PeerInfo here = peer(0, GOOD, FAR);
        PeerInfo there = peer(1, new Said("GOOD", Availability.no("not today"), YES));
        String message =
                assertThrows(MillraceException.class, () -> TransportChoice.of(List.of(GOOD, FAR), here, there))
                        .getMessage();
        assertEquals(
                "no transport connects rank 0 and rank 1: GOOD: rank 1: not today; FAR: rank 1: there is no such transport",
                message);
    }

    /** If a transport of another jar accepts a connection on only one of two ranks, both fail and neither waits. */
    @Test
    void endsOfDifferentTransportsSaySo() {
        Map<String, String> settings = Map.of("NCCL_P2P_DISABLE", "1");
        int[] asked = {0};
        try (TwoRanks ranks = new TwoRanks(directory, settings, NetworkOptions.NetworkChoice.SHM,
                each -> each.name().equals("SHM") && asked[0]++ == 0 ? new Unwilling(each) : each)) {
            String message = assertThrows(MillraceException.class, ranks::connect).getMessage();
            assertTrue(message.contains("uses another transport for it, ")
                    && message.contains("must return the same on both ranks"), message);
            assertTrue(ranks.ranks[0].describe().getFirst().startsWith("rank 0 -> rank 1, channel 0: NET (UNIX: "),
                    ranks.ranks[0].describe().toString());
            assertTrue(ranks.ranks[1].describe().getFirst().startsWith("rank 1 <- rank 0, channel 0: SHM (UNIX: "),
                    ranks.ranks[1].describe().toString());
        }
    }

    /** A transport that offers a connection and then refuses it. */
    private record Unwilling(Transport transport) implements Transport {

        @Override
        public String name() {
            return transport.name();
        }

        @Override
        public Availability offer() {
            return transport.offer();
        }

        @Override
        public Availability canConnect(PeerInfo here, PeerInfo there) {
            return Availability.no("changed its mind");
        }

        @Override
        public TransportEnd send(EndRequest request) {
            return transport.send(request);
        }

        @Override
        public TransportEnd receive(EndRequest request) {
            return transport.receive(request);
        }
    }
}
