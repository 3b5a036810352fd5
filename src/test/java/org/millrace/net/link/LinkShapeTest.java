package org.millrace.net.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;

class LinkShapeTest {

    @TempDir
    Path directory;

    @Test
    void everyPartIsRead() {
        LinkShape shape = LinkShape.parse("rate=2.5Gbit, delay=5ms,jitter=100us,loss=0.01%");
        assertEquals(new LinkShape(2_500_000_000L, Duration.ofMillis(5), Duration.ofNanos(100_000), 1e-4, false),
                shape);
        assertEquals(10_000_000, LinkShape.parse("rate=10mbit").bitsPerSecond());
        assertTrue(LinkShape.parse("down").down());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"rate=10 | '10' is no rate", "rate=0Gbit | '0Gbit' is no rate", "rate=1e99Gbit | is no rate",
                    "rate=Gbit | is no rate", "delay=5 | '5' is no delay, which is a time", "delay=2m | is no delay",
                    "delay=1ms,jitter=2ms | the jitter is longer than the delay", "speed=1Gbit | is no part of a link",
                    "rate=1Gbit,rate=2Gbit | 'rate' is given twice", "delay=1ms,loss=1 | '1' is no loss",
                    "delay=1ms,loss=100% | '100%' is no loss",
                    "loss=1% | depends on the delay, and the link has no delay", "delay=1ms,loss=x% | is no loss",
                    "'' | is no part of a link"})
    void whatCannotBeReadIsRefusedWithWhatIsAllowed(String text, String said) {
        IllegalArgumentException refused = assertThrows(IllegalArgumentException.class, () -> LinkShape.parse(text));
        assertTrue(refused.getMessage().contains(said) && refused.getMessage().contains("Allowed: rate="),
                refused.getMessage());
    }

    /**
     * Table 2 of RFC 9438: CUBIC's average window at a round trip of 0.1 s. If Reno's window (section 4.3) is larger,
     * the table contains Reno's window.
     */
    @ParameterizedTest
    @CsvSource({"1, 12", "0.01, 187", "0.0001, 5926"})
    void lossesLeaveWhatTcpKeeps(double percent, double segments) {
        double bits = LinkShape.parse("delay=50ms,loss=" + new java.math.BigDecimal(percent).toPlainString() + "%")
                .bitsPerConnection();
        double window = bits * 0.1 / 8 / 1448;
        assertEquals(segments, window, segments * .03);
    }

    @Test
    void aFileSaysWhatTheLinkIsLikeFromWhenOn() throws Exception {
        Path file = Files.writeString(directory.resolve("link"), """
                # a day in short
                1s  rate=1Gbit

                2s  down   # for a second
                3s  delay=1ms
                """);
        LinkSchedule schedule = LinkSchedule.parse("@" + file);
        assertEquals(LinkShape.NONE, schedule.at(999_999_999L));
        assertEquals(1_000_000_000, schedule.at(1_000_000_000L).bitsPerSecond());
        assertTrue(schedule.at(2_500_000_000L).down());
        assertEquals(Duration.ofMillis(1), schedule.at(Long.MAX_VALUE).delay());
    }

    @ParameterizedTest
    @ValueSource(strings = {"1s", "soon down", "2s down\n1s down", "1s fast"})
    void aFileThatCannotBeReadIsNamed(String lines) throws Exception {
        Path file = Files.writeString(directory.resolve("link"), lines);
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> LinkNetwork.require(Configuration.load(Map.of("MILLRACE_LINK", "@" + file)), List.of()));
        assertTrue(refused.getMessage().startsWith("MILLRACE_LINK: "), refused.getMessage());
        ConfigurationException absent = assertThrows(ConfigurationException.class,
                () -> LinkNetwork.require(Configuration.load(Map.of("MILLRACE_LINK", "@" + file + "-no")), List.of()));
        assertTrue(absent.getMessage().contains("NoSuchFileException"), absent.getMessage());
    }
}
