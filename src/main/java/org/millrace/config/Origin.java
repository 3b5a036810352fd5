package org.millrace.config;

/**
 * Where the value of a setting came from.
 *
 * @param source the kind of place
 * @param name   what the value is called there
 */
public record Origin(Source source, String name) {

    /** The places a value can come from, strongest last. */
    public enum Source {
        /** Nobody set it. */
        DEFAULT("default"),
        /** An environment variable. */
        ENVIRONMENT("environment"),
        /** A Java system property. */
        PROPERTY("property"),
        /** The program or the command line. */
        OVERRIDE("override");

        private final String label;

        Source(String label) {
            this.label = label;
        }
    }

    /** {@return the origin in words, for instance {@code "environment NCCL_BUFFSIZE"}} */
    @Override
    public String toString() {
        return source == Source.DEFAULT ? source.label : source.label + " " + name;
    }
}
