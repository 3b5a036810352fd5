package org.millrace.net.socket;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The open sockets of this process, each by its number, which is never reused. A count of descriptors would be useless,
 * because other activity opens and closes descriptors at any time. Examples are class loading, the JIT compiler's reads
 * of /proc, and garbage of earlier tests.
 */
public record OpenSockets(Set<String> numbers) {

    public static OpenSockets now() throws IOException {
        Set<String> numbers = new HashSet<>();
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            for (Path each : (Iterable<Path>) open::iterator) {
                try {
                    numbers.add(Files.readSymbolicLink(each).toString());
                } catch (NoSuchFileException closedMeanwhile) {
                    // The descriptor was closed after the listing.
                }
            }
        }
        numbers.removeIf(target -> !target.startsWith("socket:"));
        return new OpenSockets(numbers);
    }

    /** Returns the number of sockets that are open now and were not open when this object was created. */
    public int opened() throws IOException {
        Set<String> more = new HashSet<>(now().numbers);
        more.removeAll(numbers);
        return more.size();
    }
}
