package org.millrace.library;

import org.jspecify.annotations.Nullable;

/** A function that a binding calls. Implemented by enums, one per library. */
public interface NativeFunction {

    /**
     * How a library exports a function.
     *
     * @param symbol the exported name, for instance {@code "ncclCommSplit"}
     * @param since  the first release of the library that exports it, for instance {@code "2.18"}; null for a function
     *               that every release worth loading has: a library without it is refused when it is loaded
     */
    record Export(String symbol, @Nullable String since) {
    }

    Export export();

    /** The constant's place in its enum, from 0. */
    int ordinal();

    default String symbol() {
        return export().symbol();
    }

    /** The first release that exports it; null if every one does. */
    default @Nullable String since() {
        return export().since();
    }
}
