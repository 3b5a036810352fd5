package org.millrace.cli.base;

import java.util.Locale;

/** Formats numbers for people, in few characters. */
public final class Units {

    private Units() {}

    /** Returns a number with a decimal unit prefix: 1.23G. */
    public static String decimal(double number) {
        return scaled(number, 1000);
    }

    /** Returns a number of bytes with a binary unit prefix, as on the command line: 16M is 16 MiB. */
    public static String bytes(double number) {
        return scaled(number, 1024);
    }

    private static String scaled(double number, int thousand) {
        String prefixes = " kMGTPE";
        int prefix = 0;
        double rest = number;
        while (rest >= thousand * 0.9995 && prefix < prefixes.length() - 1) {
            rest /= thousand;
            prefix++;
        }
        String digits = rest == Math.rint(rest) && (rest < 10 || prefix == 0) || rest >= 99.95
                ? String.format(Locale.ROOT, "%.0f", rest)
                : String.format(Locale.ROOT, rest >= 9.995 ? "%.1f" : "%.2f", rest);
        return prefix == 0 ? digits : digits + prefixes.charAt(prefix);
    }

    /** Returns a number and its unit in the singular or plural: 1 process, 2 processes. */
    public static String count(long number, String one, String several) {
        return number + " " + (number == 1 ? one : several);
    }

    /** Returns a time: 12ms, 3.4s, 2m05, 3h12. */
    public static String seconds(double seconds) {
        if (seconds < 0.0995) {
            return String.format(Locale.ROOT, "%.0fms", seconds * 1e3);
        }
        if (seconds < 99.95) {
            return String.format(Locale.ROOT, "%.1fs", seconds);
        }
        long whole = Math.round(seconds);
        return whole < 3600 ? String.format(Locale.ROOT, "%dm%02d", whole / 60, whole % 60)
                : String.format(Locale.ROOT, "%dh%02d", whole / 3600, whole % 3600 / 60);
    }

    /** Returns nanoseconds as microseconds with one decimal. */
    public static String micros(double nanos) {
        return String.format(Locale.ROOT, "%.1f", nanos / 1e3);
    }

    /** Returns nanoseconds as a time with its unit: 0 µs, 870.5 µs, 12 ms, 3.4 s. */
    public static String time(double nanos) {
        String text = nanos < 1e6 ? String.format(Locale.ROOT, "%.1f µs", nanos / 1e3)
                : nanos < 1e9 ? String.format(Locale.ROOT, "%.1f ms", nanos / 1e6)
                        : String.format(Locale.ROOT, "%.1f s", nanos / 1e9);
        return text.replace(".0 ", " ");
    }

    /** Returns a part as a percentage of the whole, without the percent sign; empty if the whole is 0. */
    public static String percent(double part, double whole) {
        return whole <= 0 ? "" : String.format(Locale.ROOT, "%.0f", 100 * part / whole);
    }
}
