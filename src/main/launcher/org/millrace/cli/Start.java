package org.millrace.cli;

/**
 * Where {@code java -jar millrace.jar} begins. Compiled for an old Java by itself, so that one can say that it is too
 * old.
 */
public final class Start {

    private static final int OLDEST = 22;

    private Start() {}

    /**
     * Runs {@code Main}, if this Java can.
     *
     * @param arguments what stands behind {@code millrace}
     * @throws ReflectiveOperationException if the jar is not whole
     */
    public static void main(String[] arguments) throws ReflectiveOperationException {
        String complaint = complaint(Runtime.version().feature());
        if (complaint != null) {
            System.err.println(complaint);
            System.exit(2);
        }
        // by name: a compiler for an old Java cannot read a new one's classes
        Class.forName("org.millrace.cli.Main").getMethod("main", String[].class).invoke(null, (Object) arguments);
    }

    /** What is wrong with a release of Java; null if nothing is. */
    static String complaint(int release) {
        return release >= OLDEST ? null
                : "millrace: Java " + OLDEST + " or newer is needed, and this is " + release + " ("
                        + System.getProperty("java.home")
                        + "). Run the same with another: /path/to/jdk/bin/java -jar millrace.jar ...";
    }
}
