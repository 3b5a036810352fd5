package org.millrace.trace;

import java.util.Locale;

/** An enum with names that are shown to people and programs, in lower case. */
interface Labelled {

    String name();

    default String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
