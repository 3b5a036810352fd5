package org.millrace.net.link;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.config.ValueTypes;

/**
 * Properties of a link during a period of time.
 *
 * @param bitsPerSecond total rate of a process's connections in one direction; 0 for no limit
 * @param delay         time from one end to the other
 * @param jitter        maximum difference between a frame's delay and {@code delay}; frames stay in order
 * @param loss          fraction of TCP's segments that are lost, 0 or more and less than 1
 * @param down          whether the link is interrupted and transmits nothing
 */
public record LinkShape(long bitsPerSecond, Duration delay, Duration jitter, double loss, boolean down) {

    /** A link without limits and delays. */
    public static final LinkShape NONE = new LinkShape(0, Duration.ZERO, Duration.ZERO, 0, false);

    private static final LinkShape DOWN = new LinkShape(0, Duration.ZERO, Duration.ZERO, 0, true);
    private static final ValueTypes.DurationType TIMES =
            new ValueTypes.DurationType(Duration.ZERO, Duration.ofMinutes(1));
    private static final Map<String, Long> UNITS =
            Map.of("bit", 1L, "kbit", 1_000L, "mbit", 1_000_000L, "gbit", 1_000_000_000L);
    private static final long MAX_BITS = 10_000_000_000_000L;
    private static final double PERCENT = 100;
    private static final String FORMS = "rate=N[K|M|G]bit,delay=TIME,jitter=TIME,loss=N%, each if wanted, or down;"
            + " a time has its unit (100us, 5ms, 1s)";

    /** Number of payload bytes in a TCP segment: 1500 minus the headers of IP and TCP with time stamps. */
    private static final int SEGMENT_BYTES = 1448;
    /**
     * Factor of CUBIC's average window. The window in segments is this factor times (round trip in seconds /
     * loss)^(3/4), RFC 9438, equation 6.
     */
    private static final double CUBIC = 1.054;
    /**
     * Factor of Reno's average window. The window in segments is this factor divided by loss^(1/2), RFC 3649, section
     * 2. CUBIC uses the larger of the two windows, RFC 9438, section 4.3.
     */
    private static final double RENO = 1.22;

    /** @throws IllegalArgumentException if the text does not describe a link; the message contains the allowed forms */
    public static LinkShape parse(String text) {
        if (text.strip().equals("down")) {
            return DOWN;
        }
        Map<String, String> values = new HashMap<>();
        for (String assignment : text.split(",")) {
            String[] sides = assignment.split("=", 2);
            String name = sides[0].strip();
            if (sides.length < 2 || !name.matches("rate|delay|jitter|loss")) {
                throw wrong(text, "'" + assignment.strip() + "' is no part of a link");
            }
            if (values.put(name, sides[1].strip()) != null) {
                throw wrong(text, "'" + name + "' is given twice");
            }
        }
        LinkShape shape = new LinkShape(rate(text, values.get("rate")), time(text, "delay", values),
                time(text, "jitter", values), loss(text, values.get("loss")), false);
        if (shape.jitter.compareTo(shape.delay) > 0) {
            throw wrong(text, "the jitter is longer than the delay");
        }
        if (shape.loss > 0 && shape.delay.isZero()) {
            throw wrong(text, "TCP's rate with losses depends on the delay, and the link has no delay");
        }
        return shape;
    }

    private static long rate(String text, @Nullable String value) {
        if (value == null) {
            return 0;
        }
        String number = value.replaceFirst("[A-Za-z]*$", "");
        Long unit = UNITS.get(value.substring(number.length()).toLowerCase(Locale.ROOT));
        try {
            if (unit != null) {
                long bits = new BigDecimal(number).multiply(BigDecimal.valueOf(unit))
                        .setScale(0, RoundingMode.HALF_UP)
                        .longValueExact();
                if (bits > 0 && bits <= MAX_BITS) {
                    return bits;
                }
            }
        } catch (ArithmeticException | NumberFormatException no) {
            throw wrong(text, "'" + value + "' is no rate", no);
        }
        throw wrong(text, "'" + value + "' is no rate");
    }

    private static Duration time(String text, String name, Map<String, String> values) {
        String value = values.getOrDefault(name, "0s");
        try {
            return TIMES.parse(value);
        } catch (IllegalArgumentException no) {
            throw wrong(text, "'" + value + "' is no " + name + ", which is " + TIMES.allowed(), no);
        }
    }

    private static double loss(String text, @Nullable String value) {
        if (value == null) {
            return 0;
        }
        try {
            double percent = value.endsWith("%") ? Double.parseDouble(value.substring(0, value.length() - 1)) : -1;
            if (percent >= 0 && percent < PERCENT) {
                return percent / PERCENT;
            }
        } catch (NumberFormatException no) {
            throw wrong(text, "'" + value + "' is no loss", no);
        }
        throw wrong(text, "'" + value + "' is no loss");
    }

    private static IllegalArgumentException wrong(String text, String what) {
        return new IllegalArgumentException("link '" + text.strip() + "': " + what + ". Allowed: " + FORMS);
    }

    private static IllegalArgumentException wrong(String text, String what, Exception cause) {
        return new IllegalArgumentException("link '" + text.strip() + "': " + what + ". Allowed: " + FORMS, cause);
    }

    /** {@return bits per second that one TCP connection reaches with this loss and delay; 0 for no limit} */
    public double bitsPerConnection() {
        if (loss == 0) {
            return 0;
        }
        double roundTrip = 2 * delay.toNanos() / 1e9;
        double window = Math.max(CUBIC * Math.pow(roundTrip / loss, 0.75), RENO / Math.sqrt(loss));
        return window * SEGMENT_BYTES * Byte.SIZE / roundTrip;
    }
}
