package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process reports its stalls on standard error. The test runs this process and reads the reports. */
@Tag("slow")
class StallReportsTest {

    /** The program: two ranks in one process. Before each all-reduce, rank 1 reads one byte from standard input. */
    static final class Program {

        public static void main(String[] args) {
            Millrace.builder().set("MILLRACE_STALL_REPORT", "1s").runLocally(2, communicator -> {
                for (int operation = 0; operation < 3; operation++) {
                    if (communicator.rank() == 1) {
                        read();
                    }
                    communicator.allReduce(1.0, ReduceOp.SUM);
                }
            });
        }

        private static void read() {
            try {
                System.in.read();
            } catch (IOException closed) {
                throw new UncheckedIOException(closed);
            }
        }
    }

    @Test
    @Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void ranksOfOneProcessReportAStallOnce() throws Exception {
        Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Program.class.getName()).start();
        List<String> reports = new ArrayList<>();
        List<String> all = new ArrayList<>();
        // If two watches observe the process, both report the second stall before the third one can be reported.
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                all.add(line);
                if (line.contains("nothing moves") && line.contains("all_reduce #")) {
                    reports.add(line);
                    if (operations(reports) > operations(reports.subList(0, reports.size() - 1))) {
                        process.getOutputStream().write('\n');
                        process.getOutputStream().flush();
                    }
                }
            }
        } finally {
            process.destroyForcibly();
        }
        assertEquals(0, process.waitFor(), () -> String.join("\n", all));
        assertEquals(3, reports.size(), () -> String.join("\n", all));
    }

    private static long operations(List<String> reports) {
        return List.of("all_reduce #0", "all_reduce #1", "all_reduce #2")
                .stream()
                .filter(operation -> reports.stream().anyMatch(report -> report.contains(operation)))
                .count();
    }
}
