package org.millrace.config;

import java.util.Locale;

/**
 * Numbers of bytes: {@code 65536}, {@code 64K} or {@code 64KiB}; {@code M} and {@code G} likewise. K is 1024, as in
 * NCCL and its tests.
 *
 * @param min      the smallest that is allowed
 * @param max      the largest that is allowed
 * @param multiple what a size must be a multiple of; 1 for any
 */
public record SizeType(long min, long max, long multiple) implements ValueType<Long> {

    private static final String UNITS = "KMGT";

    @Override
    public Long parse(String text) {
        int digits = 0;
        while (digits < text.length() && text.charAt(digits) >= '0' && text.charAt(digits) <= '9') {
            digits++;
        }
        long value = Long.parseLong(text.substring(0, digits));
        long unit = unit(text.substring(digits).strip());
        if (value > Long.MAX_VALUE / unit) {
            throw new IllegalArgumentException(text);
        }
        long scaled = value * unit;
        if (scaled < min || scaled > max || scaled % multiple != 0) {
            throw new IllegalArgumentException(text);
        }
        return scaled;
    }

    private static long unit(String text) {
        String upper = text.toUpperCase(Locale.ROOT);
        if (upper.isEmpty() || upper.equals("B")) {
            return 1;
        }
        int power = UNITS.indexOf(upper.charAt(0));
        if (power < 0 || !(upper.length() == 1 || upper.substring(1).equals("IB"))) {
            throw new IllegalArgumentException(text);
        }
        return 1L << 10 * (power + 1);
    }

    @Override
    public String format(Long value) {
        return text(value);
    }

    /**
     * {@return a size with the largest unit that leaves a whole number, for instance {@code "64K"}}
     *
     * @param bytes the size
     */
    public static String text(long bytes) {
        int power = 0;
        while (bytes != 0 && bytes % 1024 == 0 && power < UNITS.length()) {
            bytes /= 1024;
            power++;
        }
        return power == 0 ? Long.toString(bytes) : bytes + UNITS.substring(power - 1, power);
    }

    @Override
    public String allowed() {
        String range =
                max == Long.MAX_VALUE ? "of " + text(min) + " or more" : "from " + text(min) + " to " + text(max);
        return "a number of bytes " + range + (multiple == 1 ? "" : ", a multiple of " + text(multiple))
                + ", with K, M or G for 2^10, 2^20 or 2^30 (as in 4M)";
    }
}
