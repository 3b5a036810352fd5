package org.millrace.cli.doctor;

import java.util.Locale;

/** Amounts of memory for people. */
final class Bytes {

    private Bytes() {}

    /** Rounded, for instance {@code "23.5 GiB"}. */
    static String text(long bytes) {
        double amount = bytes;
        int power = 0;
        while (amount >= 1024 && power < 4) {
            amount /= 1024;
            power++;
        }
        return power == 0 ? bytes + " B" : String.format(Locale.ROOT, "%.1f %ciB", amount, "KMGT".charAt(power - 1));
    }
}
