package org.millrace.cli.run;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.Optional;

/**
 * Encodes events as lines of text, which a rank in a separate process writes to its standard output. A line consists of
 * a prefix, the name of the event's class, and the event's components in JSON. Lines without the prefix are the rank's
 * other output.
 */
final class EventCodec {

    private static final String PREFIX = "@millrace-rank\t";
    private static final Gson GSON = new GsonBuilder().serializeSpecialFloatingPointValues().create();

    private EventCodec() {}

    static String encode(RankEvent event) {
        return PREFIX + event.getClass().getName() + '\t' + GSON.toJson(event);
    }

    /**
     * Returns the event in a line of a rank's output; empty for any other line.
     *
     * @throws IllegalArgumentException if the line has the prefix, but no complete event
     */
    static Optional<RankEvent> decode(String line) {
        if (!line.startsWith(PREFIX)) {
            return Optional.empty();
        }
        String[] parts = line.substring(PREFIX.length()).split("\t", 2);
        try {
            return Optional.of(GSON.fromJson(parts[1], Class.forName(parts[0]).asSubclass(RankEvent.class)));
        } catch (ClassNotFoundException | RuntimeException unknown) {
            throw new IllegalArgumentException("not an event of a rank: " + line, unknown);
        }
    }
}
