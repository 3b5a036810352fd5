package org.millrace.cli.base;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.millrace.MillraceException;

/** Text files in the jar of the command line. */
public final class Resource {

    private Resource() {}

    /** {@return the text of a file in the package of a class, or at an absolute path} */
    public static String text(Class<?> of, String name) {
        try (InputStream in = Objects.requireNonNull(of.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException failure) {
            throw new MillraceException("this build lacks " + name + ": " + failure, failure);
        }
    }
}
