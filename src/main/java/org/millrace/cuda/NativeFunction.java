package org.millrace.cuda;

/** A function that a binding calls. Implemented by enums of at most 64 constants, one per library. */
public interface NativeFunction {

    /**
     * The exported name.
     *
     * @return for instance {@code "ncclCommSplit"}
     */
    String symbol();

    /**
     * The first release of the library that exports it.
     *
     * @return for instance {@code "2.18"}; null for a function that every release worth loading has: a library without
     *         it is refused when it is loaded
     */
    String since();

    /**
     * The constant's place in its enum.
     *
     * @return 0 to 63
     */
    int ordinal();
}
