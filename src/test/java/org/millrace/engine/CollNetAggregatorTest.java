package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.Stream;
import org.millrace.agent.IdleProfile;
import org.millrace.collnet.aggregator.AggregatorConnect;
import org.millrace.collnet.aggregator.AggregatorProcess;
import org.millrace.collnet.aggregator.AggregatorService;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.tls.TlsIdentity;

/** Ranks whose elements processes of their own reduce; here they are this process's, and everything goes over TCP. */
class CollNetAggregatorTest {

    private static final Duration PATIENCE = Duration.ofSeconds(EngineGroup.PATIENCE_SECONDS);

    private final List<AggregatorService> services = new ArrayList<>();

    @TempDir
    Path directory;

    @AfterEach
    void close() {
        services.forEach(AggregatorService::close);
        assertEquals(List.of(), EngineGroup.threadsAlive(), "threads");
    }

    private AggregatorService open(String secret, String tls) {
        Configuration configuration = Configuration.load(Map.of("MILLRACE_SECRET", secret, "MILLRACE_TLS", tls));
        services.add(new AggregatorService(
                SocketOptions.defaults()
                        .withRails(List.of(InetAddress.getLoopbackAddress()))
                        .withTls(TlsIdentity.of(configuration)),
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), secret, Duration.ofSeconds(20),
                () -> IdleProfile.rank(10, 10, 100_000)));
        return services.getLast();
    }

    private AggregatorService open(String secret) {
        return open(secret, "0");
    }

    private Map<String, String> settings(String... more) {
        Map<String, String> settings = CollNetTest.settings(more);
        settings.put("MILLRACE_SOCKET_ADDRESSES", "127.0.0.1");
        settings.put("MILLRACE_COLLNET_MAX_BYTES", "1G");
        settings.put("MILLRACE_COLLNET_AGGREGATORS",
                services.stream()
                        .map(service -> "127.0.0.1:" + service.where().getPort())
                        .collect(Collectors.joining(",")));
        return settings;
    }

    /**
     * Every function, through one aggregator and several, over one channel and more, in clear and under TLS; slots of 4
     * KiB, and of 512 KiB.
     */
    @ParameterizedTest
    @CsvSource({"2, 1, 1, 32K, 0", "3, 2, 2, 32K, 0", "2, 2, 1, 4M, 0", "3, 2, 1, 4M, 1"})
    void elementsAreReducedElsewhere(int ranks, int aggregators, int channels, String buffer, String tls)
            throws Exception {
        for (int i = 0; i < aggregators; i++) {
            open("sesame", tls);
        }
        List<Throwable> thrown = EngineGroup.run(directory, ranks, settings("MILLRACE_SECRET", "sesame", "MILLRACE_TLS",
                tls, "NCCL_MIN_NCHANNELS", "" + channels, "NCCL_BUFFSIZE", buffer), communicator -> {
                    for (int count : new int[] {1, 3, 513, 70_001}) {
                        reduce(communicator, count);
                    }
                    CollNetTest.gather(communicator, 7, false);
                    CollNetTest.gather(communicator, 30_001, true);
                    CollNetTest.scatter(communicator, 1, true);
                    CollNetTest.scatter(communicator, 30_001, false);
                });
        thrown.forEach(failure -> assertNull(failure));
        services.forEach(service -> assertEquals(channels, service.served()));
    }

    private static void reduce(org.millrace.Communicator communicator, int count) {
        int ranks = communicator.size();
        try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
            MemorySegment data = CollNetTest.filled(communicator, count, arena);
            communicator.allReduce(data, data, count, DataType.INT64, ReduceOp.SUM, stream);
            stream.synchronize(PATIENCE);
            assertEquals("collnetdirect", communicator.route().orElseThrow().algorithm());
            for (int at = 0; at < count; at++) {
                long sum = (long) ranks * at + ranks * (ranks - 1) / 2;
                if (sum != data.getAtIndex(ValueLayout.JAVA_LONG, at)) {
                    assertEquals(sum, data.getAtIndex(ValueLayout.JAVA_LONG, at), "element " + at + " of " + count);
                }
            }
        }
    }

    @Test
    void ranksThatDisagreeAreTold() throws Exception {
        open("");
        List<Throwable> thrown = EngineGroup.run(directory, 2, settings(), communicator -> {
            try (Arena arena = Arena.ofShared(); Stream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(800, arena);
                communicator.allReduce(data, data, communicator.rank() == 1 ? 99 : 100, DataType.INT64, ReduceOp.SUM,
                        stream);
                stream.synchronize(PATIENCE);
            }
        });
        for (Throwable failure : thrown) {
            assertTrue(failure != null && failure.getMessage().contains("the ranks disagree"), String.valueOf(failure));
        }
    }

    @Test
    void anAggregatorThatEndsIsMissed() throws Exception {
        AggregatorService service = open("");
        CountDownLatch reduced = new CountDownLatch(2);
        CountDownLatch ended = new CountDownLatch(1);
        Thread end = Thread.ofPlatform().start(() -> {
            try {
                reduced.await();
                service.close();
            } catch (InterruptedException none) {
                return;
            } finally {
                ended.countDown();
            }
        });
        List<Throwable> thrown = EngineGroup.run(directory, 2, settings(), communicator -> {
            reduce(communicator, 100);
            reduced.countDown();
            ended.await();
            reduce(communicator, 100);
        });
        end.join();
        services.clear();
        for (Throwable failure : thrown) {
            assertTrue(failure != null && failure.getMessage().contains("has ended: the aggregator at 127.0.0.1:"),
                    String.valueOf(failure));
        }
    }

    /** The second of two, while the first goes on: every rank says which of them it was. */
    @ParameterizedTest
    @ValueSource(strings = {"0", "1"})
    void allRanksNameAnAggregatorThatIsKilled(String tls) throws Exception {
        open("sesame", tls);
        try (AggregatorProcess aggregator = AggregatorProcess.start("sesame", tls)) {
            CountDownLatch reduced = new CountDownLatch(3);
            Thread end = Thread.ofPlatform().start(() -> {
                try {
                    reduced.await();
                } catch (InterruptedException none) {
                    // it is ended all the same
                } finally {
                    aggregator.kill();
                }
            });
            Map<String, String> settings =
                    settings("MILLRACE_SECRET", "sesame", "MILLRACE_TLS", tls, "MILLRACE_STALL_DEADLINE", "10m");
            settings.merge("MILLRACE_COLLNET_AGGREGATORS", aggregator.where(), (one, other) -> one + ',' + other);
            List<Throwable> thrown = EngineGroup.run(directory, 3, settings, communicator -> {
                reduce(communicator, 100);
                reduced.countDown();
                while (true) { // until it is missed
                    reduce(communicator, 70_001);
                }
            });
            end.join();
            for (Throwable failure : thrown) {
                assertTrue(
                        failure != null && failure.getMessage()
                                .contains("has ended: the aggregator at " + aggregator.where() + ": "),
                        String.valueOf(failure));
            }
        }
    }

    /** Whoever does not know the secret is told what may be wrong, and where; it needs no deadline for that. */
    @ParameterizedTest
    @CsvSource({"barley, 0, 0", "barley, 1, 1", "sesame, 0, 1", "sesame, 1, 0"})
    void whoDoesNotKnowTheSecretIsTurnedAway(String secret, String tls, String tlsThere) throws Exception {
        open("sesame", tlsThere);
        List<Throwable> thrown = EngineGroup.run(directory, 2,
                settings("MILLRACE_SECRET", secret, "MILLRACE_TLS", tls, "MILLRACE_CONNECT_DEADLINE", "40s"),
                communicator -> reduce(communicator, 8));
        for (Throwable failure : thrown) {
            assertNotNull(failure);
            assertTrue(
                    failure.getMessage()
                            .contains("cannot connect with the aggregator at 127.0.0.1:"
                                    + services.getFirst().where().getPort() + ": ")
                            && failure.getMessage().contains("with the same MILLRACE_SECRET and MILLRACE_TLS?"),
                    failure.getMessage());
        }
        assertEquals(0, services.getFirst().served());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "here", "here:", ":7", "127.0.0.1:65536", "127.0.0.1:7,", "127.0.0.1:x"})
    void placesAreHostAndPort(String text) {
        String said = assertThrows(ConfigurationException.class,
                () -> AggregatorConnect.parse(text, SocketOptions.defaults())).getMessage();
        assertTrue(said.contains("MILLRACE_COLLNET_AGGREGATORS=") && said.contains("HOST:PORT"), said);
        assertInstanceOf(InetSocketAddress.class,
                AggregatorConnect.parse("127.0.0.1:7, [::1]:8", SocketOptions.defaults()).getLast());
    }
}
