package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.cli.Run;

/**
 * A rank hangs in the plugin's connect or accept, for example in {@code ncclCommInitRank}. The rank's log and
 * {@code millrace why} explain the hang.
 */
@Tag("slow")
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HangingConnectTest {

    private static final long LOOK_MILLIS = 20;
    private static final String SILENCE = "\\. Nothing has moved for (\\d+\\.\\d) s";

    @TempDir
    private Path directory;
    private Process ranks;

    private Path output() {
        return directory.resolve("output");
    }

    private void start(String network, String way) throws Exception {
        ranks = HostProgram.compile("connect_host", "-DNET_VERSION=11", "-DNCCL_CODE=22809", "-rdynamic")
                .withNetwork(network)
                .with("MILLRACE_TRACE_DIRECTORY", directory.toString())
                .with("MILLRACE_CONNECT_DEADLINE", "300s")
                .with("MILLRACE_STALL_REPORT", "1s")
                .start(output(), HostProgram.library(), way);
    }

    @AfterEach
    void end() throws Exception {
        ranks.getOutputStream().close();
        ranks.waitFor();
    }

    private Run why(String... options) {
        return Run.of(Stream.concat(Stream.of("why", "--directory", directory.toString()), Stream.of(options))
                .toArray(String[]::new));
    }

    private String stall() throws Exception {
        Run why = why();
        while (why.status() != 3) {
            assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS), Files.readString(output()) + why);
            why = why();
        }
        return why.out();
    }

    private String line(String pattern) throws Exception {
        Matcher found = Pattern.compile(pattern).matcher(Files.readString(output()));
        while (!found.find()) {
            assertFalse(ranks.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS), Files.readString(output()));
            found = Pattern.compile(pattern).matcher(Files.readString(output()));
        }
        return found.group(1);
    }

    private void isExplained(int rank, String phase) throws Exception {
        String pid = line("rank " + rank + " is pid (\\d+)\n");
        String sentence =
                "Rank " + rank + " \\(pid " + pid + " on [^ ]+, running\\) has not connected: " + phase + SILENCE;
        String text = stall();
        Matcher found = Pattern.compile(sentence + "\\.\n").matcher(text);
        assertTrue(found.matches(), text);
        assertTrue(Double.parseDouble(found.group(1)) >= 1, text);
        String json = why("--json").out();
        for (String part : new String[] {"\"verdict\": \"not connected\"", "\"communicator\": \"0x1234\"",
                "\"rank\": " + rank, "\"pid\": " + pid, "\"connection\": \"" + phase + "\""}) {
            assertTrue(Pattern.compile(part).matcher(json).find(), part + json);
        }
        line("millrace: rank " + rank + ", pid " + pid + " on [^ ]+: nothing moves. (" + sentence + ")\n");
    }

    @ParameterizedTest
    @CsvSource({"socket, socket connection \\S+ to port \\d+ of 127.0.0.1 waits for the listener's answer",
            "shm, shared-memory connection \\S+ to pid \\d+ waits for an answer",
            "auto, shared-memory connection \\S+ to pid \\d+ waits for an answer"})
    void aRankThatIsNotAcceptedIsNamedWithTheAddress(String network, String phase) throws Exception {
        start(network, "connect");
        isExplained(1, phase);
    }

    @ParameterizedTest
    @CsvSource({"socket, connection \\S+ expected by socket listener 127.0.0.1 port \\d+ waits for its other end",
            "auto, connection \\S+ expected by socket listener 127.0.0.1 port \\d+ waits for its other end"})
    void aRankThatWaitsForAClientIsNamedWithItsAddress(String network, String phase) throws Exception {
        start(network, "accept");
        isExplained(0, phase);
    }

    @Test
    void aRankThatWaitsInTheBootstrapOfNcclIsNamed() throws Exception {
        start("shm", "absent");
        isExplained(0,
                "ncclCommInitRank waits for the other ranks: a rank has not called it, or NCCL's bootstrap cannot"
                        + " reach a rank");
    }

    @Test
    void aConnectionThatIsMadeIsNoStall() throws Exception {
        start("socket", "finish");
        stall();
        OutputStream input = ranks.getOutputStream();
        input.write('\n');
        input.flush();
        line("(CONNECTED)\n");
        assertEquals(0, why().status(), why()::toString);
    }
}
