package org.millrace.net.link;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.millrace.config.ValueTypes;

/**
 * A link of {@code MILLRACE_LINK}: either one constant link, or the links of a file, which apply one after another.
 * Each line of the file has two parts. The first part is a time, counted from the opening of the network. The second
 * part describes the link that applies from this time on. Empty lines and text behind {@code #} are ignored:
 *
 * <pre>
 * 0s   rate=10Gbit,delay=5ms
 * 30s  down
 * 32s  rate=1Gbit,delay=5ms
 * </pre>
 */
final class LinkSchedule {

    private static final ValueTypes.DurationType TIMES =
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofHours(24));
    static final String FILE = "@";

    private final String text;
    private final long[] from;
    private final LinkShape[] shapes;
    /**
     * For each element of {@link #shapes}: end of the last interruption before the element applies, in nanoseconds
     * after the network was opened; 0 if there was none.
     */
    private final long[] up;

    private LinkSchedule(String text, List<Duration> from, List<LinkShape> shapes) {
        this.text = text;
        this.from = from.stream().mapToLong(Duration::toNanos).toArray();
        this.shapes = shapes.toArray(LinkShape[]::new);
        up = new long[this.from.length];
        for (int i = 1; i < up.length; i++) {
            up[i] = this.shapes[i - 1].down() ? this.from[i] : up[i - 1];
        }
    }

    /**
     * Reads the description of one link, or {@code @} and the path of a file with times and links.
     *
     * @throws IllegalArgumentException if the text or the file cannot be read; the message lists the allowed forms
     */
    static LinkSchedule parse(String text) {
        if (!text.startsWith(FILE)) {
            return new LinkSchedule(text, List.of(Duration.ZERO), List.of(LinkShape.parse(text)));
        }
        Path file = Path.of(text.substring(FILE.length()));
        List<Duration> from = new ArrayList<>(List.of(Duration.ZERO));
        List<LinkShape> shapes = new ArrayList<>(List.of(LinkShape.NONE));
        try {
            for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
                String[] words = line.replaceFirst("#.*", "").strip().split("\\s+", 2);
                if (words[0].isEmpty()) {
                    continue;
                }
                if (words.length < 2) {
                    throw new IllegalArgumentException(file + ": '" + line + "' is not a time and a link");
                }
                Duration begin = time(file, words[0]);
                if (begin.compareTo(from.getLast()) < 0) {
                    throw new IllegalArgumentException(file + ": '" + line + "' begins before the line above it");
                }
                from.add(begin);
                shapes.add(LinkShape.parse(words[1]));
            }
        } catch (IOException unread) {
            throw new IllegalArgumentException("the file cannot be read: " + unread, unread);
        }
        return new LinkSchedule(text, from, shapes);
    }

    private static Duration time(Path file, String text) {
        try {
            return TIMES.parse(text);
        } catch (IllegalArgumentException no) {
            throw new IllegalArgumentException(file + ": '" + text + "' is no time, which is " + TIMES.allowed(), no);
        }
    }

    /** Returns the link that applies at a time, given in nanoseconds after the network was opened. */
    LinkShape at(long nanos) {
        return shapes[line(nanos)];
    }

    /**
     * Returns the start of the uninterrupted period that contains a given time. Both times are in nanoseconds after the
     * network was opened.
     */
    long upSince(long nanos) {
        return up[line(nanos)];
    }

    private int line(long nanos) {
        int last = shapes.length - 1;
        while (last > 0 && from[last] > nanos) {
            last--;
        }
        return last;
    }

    /** Returns the maximum number of bytes that can be in flight on the link at the same time. */
    long bytesOnTheWay() {
        long most = 0;
        for (LinkShape shape : shapes) {
            double seconds = shape.delay().plus(shape.jitter()).toNanos() / 1e9;
            double rate = shape.bitsPerSecond() == 0 ? Double.MAX_VALUE : shape.bitsPerSecond();
            if (shape.loss() > 0) {
                rate = Math.min(rate, shape.bitsPerConnection());
            }
            most = Math.max(most, seconds == 0 ? 0 : (long) Math.min(rate / Byte.SIZE * seconds, Long.MAX_VALUE));
        }
        return most;
    }

    /** {@return maximum time that a frame is in flight} */
    Duration longestDelay() {
        Duration longest = Duration.ZERO;
        for (LinkShape shape : shapes) {
            Duration delay = shape.delay().plus(shape.jitter());
            longest = delay.compareTo(longest) > 0 ? delay : longest;
        }
        return longest;
    }

    @Override
    public String toString() {
        return text;
    }
}
