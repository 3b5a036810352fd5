package org.millrace.bench.report;

import java.util.Locale;

/** Pieces of HTML. */
final class Html {

    private Html() {}

    /** Text in which nothing is markup. */
    static String text(Object value) {
        return String.valueOf(value)
                .replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    /** A format whose numbers are written the same everywhere. */
    static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
