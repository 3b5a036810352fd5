package org.millrace.config;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Map;

/**
 * Lengths of time, always with a unit: {@code 100us}, {@code 500ms}, {@code 30s}, {@code 10m}, {@code 1h}.
 *
 * @param min the shortest that is allowed
 * @param max the longest that is allowed
 */
public record DurationType(Duration min, Duration max) implements ValueType<Duration> {

    private static final Map<String, ChronoUnit> UNITS = Map.of("us", ChronoUnit.MICROS, "ms", ChronoUnit.MILLIS, "s",
            ChronoUnit.SECONDS, "m", ChronoUnit.MINUTES, "h", ChronoUnit.HOURS);

    @Override
    public Duration parse(String text) {
        int digits = 0;
        while (digits < text.length() && text.charAt(digits) >= '0' && text.charAt(digits) <= '9') {
            digits++;
        }
        ChronoUnit unit = UNITS.get(text.substring(digits).strip());
        if (unit == null) {
            throw new IllegalArgumentException(text);
        }
        Duration value;
        try {
            value = Duration.of(Long.parseLong(text.substring(0, digits)), unit);
        } catch (ArithmeticException overflow) {
            throw new IllegalArgumentException(text, overflow);
        }
        if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
            throw new IllegalArgumentException(text);
        }
        return value;
    }

    @Override
    public String format(Duration value) {
        return text(value);
    }

    /**
     * {@return a duration with the largest unit that leaves a whole number, for instance {@code "30s"}}
     *
     * @param value a duration of whole microseconds
     */
    public static String text(Duration value) {
        long micros = value.toNanos() / 1000;
        if (micros % 1000 != 0) {
            return micros + "us";
        }
        long millis = micros / 1000;
        if (millis % 1000 != 0) {
            return millis + "ms";
        }
        long seconds = millis / 1000;
        if (seconds == 0 || seconds % 60 != 0) {
            return seconds + "s";
        }
        return seconds % 3600 == 0 ? seconds / 3600 + "h" : seconds / 60 + "m";
    }

    @Override
    public String allowed() {
        return "a time from " + text(min) + " to " + text(max) + " with its unit: us, ms, s, m or h (as in 30s)";
    }
}
