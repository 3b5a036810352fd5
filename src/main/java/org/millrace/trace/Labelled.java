package org.millrace.trace;

import java.util.Locale;

/** Enum with lower-case names for output to users and programs. */
interface Labelled {

    String name();

    default String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
