package org.millrace.cli;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/**
 * Entry point of {@code java -jar millrace.jar} and of the benchmarks' jar. It is compiled separately for an old Java,
 * so that such a Java can report that it is too old.
 */
public final class Start {

    private static final int OLDEST = 22;
    /** Resource that names the main class, in jars other than the command line's. */
    private static final String MAIN = "/META-INF/millrace-main";

    private Start() {}

    /**
     * Runs the main class of the jar if this Java can run it.
     *
     * @param arguments arguments of {@code millrace}
     * @throws ReflectiveOperationException if the jar is incomplete
     * @throws IOException                  if the jar cannot be read
     */
    public static void main(String[] arguments) throws ReflectiveOperationException, IOException {
        String complaint = complaint(Runtime.version().feature());
        if (complaint != null) {
            System.err.println(complaint);
            System.exit(2);
        }
        // by name, because a compiler for an old Java cannot read classes of a new one
        Class.forName(main()).getMethod("main", String[].class).invoke(null, (Object) arguments);
    }

    private static String main() throws IOException {
        try (InputStream named = Start.class.getResourceAsStream(MAIN)) {
            return named == null ? "org.millrace.cli.Main"
                    : new String(named.readAllBytes(), StandardCharsets.US_ASCII).trim();
        }
    }

    /** Returns a message if a release of Java is too old; null otherwise. */
    static String complaint(int release) {
        return release >= OLDEST ? null
                : "millrace: Java " + OLDEST + " or newer is needed, and this is " + release + " ("
                        + System.getProperty("java.home") + "). Run the same with another: /path/to/jdk/bin/java -jar "
                        + System.getProperty("java.class.path") + " ...";
    }
}
