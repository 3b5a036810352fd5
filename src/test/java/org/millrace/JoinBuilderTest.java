package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/** Each value that a program sets in a builder becomes a setting. A join reports missing values. */
class JoinBuilderTest {

    @Test
    void aNegativeDeadlineIsRefused() {
        JoinBuilder builder = Millrace.builder();
        for (Function<Duration, JoinBuilder> each : List.<Function<Duration, JoinBuilder>>of(builder::connectDeadline,
                builder::stallDeadline, builder::lateDeadline, builder::closeDeadline)) {
            String said =
                    assertThrows(IllegalArgumentException.class, () -> each.apply(Duration.ofSeconds(-5))).getMessage();
            assertTrue(said.matches("MILLRACE_[A-Z]+_DEADLINE: the deadline PT-5S is negative; give 1 ms to 24 h"),
                    said);
        }
    }

    @Test
    void everyMethodSetsWhatItSays() {
        JoinBuilder builder = Millrace.builder()
                .device("host")
                .network("socket")
                .socketInterfaces("eth", "ib")
                .secret("word")
                .tls(true)
                .threads(3)
                .channels(2, 4)
                .bufferSize(1 << 21)
                .algorithms("ring", "tree")
                .protocols("LL", "Simple")
                .connectDeadline(Duration.ofMillis(1500))
                .stallDeadline(Duration.ofMinutes(2))
                .lateDeadline(Duration.ofHours(3))
                .closeDeadline(Duration.ofSeconds(4))
                .set("MILLRACE_TRACE", "off");
        Configuration read = Configuration.load(Map.of(), new Properties(), builder.settings());
        assertEquals("host", read.get(Settings.DEVICE));
        assertEquals("socket", read.get(Settings.NETWORK));
        assertEquals(Optional.of("eth,ib"), read.get(Settings.SOCKET_INTERFACES));
        assertEquals("word", read.get(Settings.SECRET));
        assertEquals(true, read.get(Settings.TLS));
        assertEquals(Optional.of(3), read.get(Settings.THREADS));
        assertEquals(Optional.of(2), read.get(Settings.MIN_CHANNELS));
        assertEquals(Optional.of(4), read.get(Settings.MAX_CHANNELS));
        assertEquals(1L << 21, read.get(Settings.BUFFER_SIZE));
        assertEquals(Optional.of("ring,tree"), read.get(Settings.ALGORITHMS));
        assertEquals(Optional.of("LL,Simple"), read.get(Settings.PROTOCOLS));
        assertEquals(Duration.ofMillis(1500), read.get(Settings.CONNECT_DEADLINE));
        assertEquals(Duration.ofMinutes(2), read.get(Settings.STALL_DEADLINE));
        assertEquals(Duration.ofHours(3), read.get(Settings.LATE_DEADLINE));
        assertEquals(Duration.ofSeconds(4), read.get(Settings.CLOSE_DEADLINE));
        Set<String> called = Set.of("rendezvous", "rank", "size", "device", "network", "socketInterfaces", "secret",
                "tls", "threads", "channels", "bufferSize", "algorithms", "protocols", "connectDeadline",
                // ListenerTest covers the methods onStall and onLoss
                "stallDeadline", "lateDeadline", "closeDeadline", "set", "onStall", "onLoss");
        assertEquals(new TreeSet<>(called),
                Arrays.stream(JoinBuilder.class.getMethods())
                        .filter(method -> method.getReturnType() == JoinBuilder.class)
                        .map(Method::getName)
                        .collect(Collectors.toCollection(TreeSet::new)),
                "methods that this test does not call");
    }

    @Test
    void joins(@TempDir Path directory) {
        try (Communicator communicator = Millrace.builder()
                .rendezvous("file:" + directory.resolve("group"))
                .rank(0)
                .size(1)
                .device("host")
                .join()) {
            assertEquals("emulated device 0", communicator.device().name());
        }
    }

    @Test
    void whatIsMissingIsNamed() {
        said("rank is not set, size is 2", () -> Millrace.builder().rendezvous("file:x").size(2).join());
        said("rank 2 of 2: ranks are 0 to size - 1",
                () -> Millrace.builder().rendezvous("file:x").rank(2).size(2).join());
        said("unknown setting: MILLRACE_NETS; did you mean MILLRACE_NET?",
                () -> Millrace.builder()
                        .device("host")
                        .rendezvous("file:x")
                        .rank(0)
                        .size(1)
                        .set("MILLRACE_NETS", "shm")
                        .join());
        assertTrue(assertThrows(NullPointerException.class, () -> Millrace.builder().stallDeadline(null)).getMessage()
                .contains("MILLRACE_STALL_DEADLINE is null"));
        assertTrue(assertThrows(NullPointerException.class, () -> Millrace.builder().network(null)).getMessage()
                .contains("MILLRACE_NET is null"));
    }

    private static void said(String what, Runnable call) {
        String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
        assertTrue(message.contains(what), message);
    }

    @Test
    void theMeetingPlaceOfLocalRanksIsDeletedWithItsDecisions() throws IOException {
        Path directory = JoinBuilder.LocalRanks.meetingPlace();
        Files.createFile(Files.createDirectory(directory.resolve("millrace-decisions-0")).resolve("1-0"));
        JoinBuilder.LocalRanks.forget(directory);
        assertFalse(Files.exists(directory));
    }
}
