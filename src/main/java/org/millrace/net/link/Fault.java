package org.millrace.net.link;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * A fault that happens once, at a frame of a connection. The text of a fault has one of the following forms:
 *
 * <ul>
 * <li>{@code flip:frame=3,bit=17}: one bit of the third frame's payload arrives inverted. Bits count from 0, the lowest
 * bit of the first byte. If a payload has no such bit, the fault waits for a later frame
 * <li>{@code cut:frame=5}: the connection is lost after the fifth frame was sent
 * <li>{@code cut:frame=9,rail=1}: the second rail of the connection is lost while the ninth frame is in flight. The
 * fault happens only to a connection that has a second rail; the connection continues on its other rails
 * <li>{@code delay:frame=2,polls=1000}: the second frame and all later frames are held back for 1000 calls of
 * {@code progress}
 * <li>{@code garbage:frame=1}: the first frame's header words arrive as random numbers
 * </ul>
 *
 * <p>
 * Frames count from 1 on each connection. Without {@code connection=}, the fault happens to the first connection that
 * reaches the frame. With {@code ,connection=2}, the fault happens only to the second connection that the process began
 * to connect. Rails count from 0, as in messages. Semicolons separate several faults.
 *
 * @param frame      ordinal of the frame in its connection, 1 or more
 * @param bit        for {@link Kind#FLIP}: index of the bit in the payload
 * @param polls      for {@link Kind#DELAY}: number of calls of {@code progress}
 * @param rail       for {@link Kind#CUT}: index of the rail; {@value #WHOLE_CONNECTION} for the whole connection
 * @param connection ordinal of the connection in the order of the calls of {@code connect}, from 1; 0 for the first
 *                   connection that reaches the frame
 */
public record Fault(Kind kind, long frame, long bit, long polls, long rail, long connection) {

    /** Rail index that represents all rails of a connection. */
    public static final long WHOLE_CONNECTION = -1;

    private static final Set<String> FROM_ZERO = Set.of("bit", "rail");
    private static final String FORMS =
            "flip:frame=N,bit=N  cut:frame=N[,rail=N]  delay:frame=N,polls=N  garbage:frame=N, each "
                    + "with ,connection=N if wanted;"
                    + " frames and connections count from 1, bits and rails from 0; several faults are "
                    + "separated by ';'";

    /** Kind of a fault. */
    public enum Kind {
        /** A bit of the payload is inverted. */
        FLIP("bit", null),
        /** The connection, or one rail of it, is lost. */
        CUT(null, "rail"),
        /** A frame arrives late. */
        DELAY("polls", null),
        /** The header's words are random. */
        GARBAGE(null, null);

        private final @Nullable String parameter;
        private final @Nullable String option;

        Kind(@Nullable String parameter, @Nullable String option) {
            this.parameter = parameter;
            this.option = option;
        }

        private boolean takes(String name) {
            return required().contains(name) || name.equals(option) || name.equals("connection");
        }

        private Set<String> required() {
            return parameter == null ? Set.of("frame") : Set.of("frame", parameter);
        }
    }

    /**
     * Returns the faults that the setting plants; empty if it is not set.
     *
     * @throws ConfigurationException if the text cannot be read; the message lists the allowed forms
     */
    public static List<Fault> of(Configuration configuration) {
        try {
            return configuration.get(Settings.FAULT).map(Fault::parse).orElse(List.of());
        } catch (IllegalArgumentException refused) {
            throw new ConfigurationException(Settings.FAULT.name() + ": " + refused.getMessage());
        }
    }

    /**
     * Reads a list of faults, see {@link Fault}; the list is empty if the text is empty.
     *
     * @throws IllegalArgumentException if the text does not describe faults; the message contains the allowed forms
     */
    public static List<Fault> parse(String text) {
        List<Fault> faults = new ArrayList<>();
        for (String each : text.split(";")) {
            if (!each.isBlank()) {
                faults.add(parseOne(each.strip()));
            }
        }
        return List.copyOf(faults);
    }

    /** Returns the text of this fault, which {@link #parse} accepts. Equal faults have equal texts. */
    public String text() {
        StringBuilder text = new StringBuilder(kind.name().toLowerCase(Locale.ROOT)).append(":frame=").append(frame);
        if (kind == Kind.FLIP) {
            text.append(",bit=").append(bit);
        }
        if (kind == Kind.DELAY) {
            text.append(",polls=").append(polls);
        }
        if (rail != WHOLE_CONNECTION) {
            text.append(",rail=").append(rail);
        }
        if (connection != 0) {
            text.append(",connection=").append(connection);
        }
        return text.toString();
    }

    /** Describes, for messages, the frame and the connection at which the fault happens. */
    String moment() {
        String which =
                connection == 0 ? " of a connection" : " of connection " + connection + ", in the order of connect,";
        String through = rail == WHOLE_CONNECTION ? ""
                : " that has a rail " + rail + " (they count from 0, and one network address is one rail)";
        return "frame " + frame + " or a later one"
                + (kind == Kind.FLIP ? ", with a payload of more than " + bit + " bits," : "") + which + through;
    }

    private static Fault parseOne(String text) {
        String[] parts = text.split(":", 2);
        Kind kind = kindOf(parts[0].strip(), text);
        Map<String, Long> values = new HashMap<>();
        for (String assignment : parts.length < 2 ? new String[0] : parts[1].split(",")) {
            String[] sides = assignment.split("=", 2);
            String name = sides[0].strip();
            if (sides.length < 2 || !kind.takes(name)) {
                throw wrong(text, "'" + assignment.strip() + "' is no parameter of " + parts[0].strip());
            }
            if (values.put(name, number(sides[1].strip(), FROM_ZERO.contains(name) ? 0 : 1, text)) != null) {
                throw wrong(text, "'" + name + "' is given twice");
            }
        }
        for (String name : kind.required()) {
            if (!values.containsKey(name)) {
                throw wrong(text, "'" + name + "=' is missing");
            }
        }
        return new Fault(kind, values.get("frame"), values.getOrDefault("bit", 0L), values.getOrDefault("polls", 0L),
                values.getOrDefault("rail", WHOLE_CONNECTION), values.getOrDefault("connection", 0L));
    }

    private static Kind kindOf(String name, String text) {
        for (Kind kind : Kind.values()) {
            if (kind.name().equalsIgnoreCase(name)) {
                return kind;
            }
        }
        throw wrong(text, "there is no fault '" + name + "'");
    }

    private static long number(String digits, long least, String text) {
        try {
            long value = Long.parseLong(digits);
            if (value >= least) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw wrong(text, "'" + digits + "' is no number");
        }
        throw wrong(text, digits + " is less than " + least);
    }

    private static IllegalArgumentException wrong(String text, String what) {
        return new IllegalArgumentException("fault '" + text + "': " + what + ". Allowed: " + FORMS);
    }

    /**
     * Counts how often each fault has happened in this process, on any of its networks. If a fault did not happen in a
     * run, the run does not show that the job survives the fault. At its end this process reports the faults that did
     * not happen, unless another part of the program reports them.
     */
    public static final class PlantedFaults {

        private static final Map<Fault, Long> HAPPENED = new LinkedHashMap<>();
        private static final Set<Fault> WATCHED = Collections.synchronizedSet(new LinkedHashSet<>());
        private static volatile boolean othersSay;
        private static boolean hooked;

        private PlantedFaults() {}

        static void happened(Fault fault) {
            synchronized (HAPPENED) {
                HAPPENED.merge(fault, 1L, Long::sum);
            }
        }

        /** Returns a copy of the counts so far, by fault. */
        public static Map<Fault, Long> counts() {
            synchronized (HAPPENED) {
                return new LinkedHashMap<>(HAPPENED);
            }
        }

        /**
         * Requests a report on standard error at the end of the process. The report names each planted fault that did
         * not happen.
         */
        public static void watch(List<Fault> planted) {
            WATCHED.addAll(planted);
            synchronized (WATCHED) {
                if (!hooked) {
                    hooked = true;
                    try {
                        Runtime.getRuntime()
                                .addShutdownHook(new Thread(PlantedFaults::sayWhatDidNotHappen, "planted-faults"));
                    } catch (IllegalStateException ending) {
                        // The process is ending already, so it cannot report a fault that is planted now.
                    }
                }
            }
        }

        /**
         * Disables the report at the end of this process, because the caller reports the faults. The caller controls
         * several processes, and a fault may have happened in any of them.
         */
        public static void leaveToCaller() {
            othersSay = true;
        }

        private static void sayWhatDidNotHappen() {
            if (othersSay) {
                return;
            }
            Set<Fault> happened = counts().keySet();
            synchronized (WATCHED) {
                for (Fault fault : WATCHED) {
                    if (!happened.contains(fault)) {
                        System.err.println("millrace: " + missed(fault));
                    }
                }
            }
        }

        /** Returns the message about a fault that did not happen, with the event that the fault waited for. */
        public static String missed(Fault fault) {
            return "the planted fault " + fault.text()
                    + " (MILLRACE_FAULT) did not happen, so this run does not test it: it needs " + fault.moment()
                    + ", and no such frame was sent";
        }
    }
}
