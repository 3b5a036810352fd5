package org.millrace.cli;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * Where {@code java -jar millrace.jar} begins, and that of the benchmarks. Compiled for an old Java by itself, so that
 * one can say that it is too old.
 */
public final class Start {

    private static final int OLDEST = 22;
    /** In a jar that is not the command line's: which class begins there. */
    private static final String MAIN = "/META-INF/millrace-main";

    private Start() {}

    /**
     * Runs what the jar is for, if this Java can.
     *
     * @param arguments what stands behind {@code millrace}
     * @throws ReflectiveOperationException if the jar is not whole
     * @throws IOException                  if it cannot be read
     */
    public static void main(String[] arguments) throws ReflectiveOperationException, IOException {
        String complaint = complaint(Runtime.version().feature());
        if (complaint != null) {
            System.err.println(complaint);
            System.exit(2);
        }
        // by name: a compiler for an old Java cannot read a new one's classes
        Class.forName(main()).getMethod("main", String[].class).invoke(null, (Object) arguments);
    }

    private static String main() throws IOException {
        try (InputStream named = Start.class.getResourceAsStream(MAIN)) {
            return named == null ? "org.millrace.cli.Main"
                    : new String(named.readAllBytes(), StandardCharsets.US_ASCII).trim();
        }
    }

    /** What is wrong with a release of Java; null if nothing is. */
    static String complaint(int release) {
        return release >= OLDEST ? null
                : "millrace: Java " + OLDEST + " or newer is needed, and this is " + release + " ("
                        + System.getProperty("java.home") + "). Run the same with another: /path/to/jdk/bin/java -jar "
                        + System.getProperty("java.class.path") + " ...";
    }
}
