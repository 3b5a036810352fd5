package org.millrace.bench.report;

import java.util.Locale;

/** Pieces of HTML. */
final class Html {

    private Html() {}

    /** Returns text without markup. */
    static String text(Object value) {
        return String.valueOf(value)
                .replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    /** Formats with the same number format in every locale. */
    static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
