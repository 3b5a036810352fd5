package org.millrace.net.socket;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The sockets that this process has open, each by its number, which is never given to another. A plain count of
 * descriptors would be of no use: class loading, the JIT compiler's looks into /proc, and the garbage of tests before
 * this one open and close some at any time.
 */
public record OpenSockets(Set<String> numbers) {

    public static OpenSockets now() throws IOException {
        Set<String> numbers = new HashSet<>();
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            for (Path each : (Iterable<Path>) open::iterator) {
                try {
                    numbers.add(Files.readSymbolicLink(each).toString());
                } catch (NoSuchFileException closedMeanwhile) {
                    // it is not open
                }
            }
        }
        numbers.removeIf(target -> !target.startsWith("socket:"));
        return new OpenSockets(numbers);
    }

    /** How many are open now that were not then. */
    public int opened() throws IOException {
        Set<String> more = new HashSet<>(now().numbers);
        more.removeAll(numbers);
        return more.size();
    }
}
