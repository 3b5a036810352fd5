package org.millrace.operation;

import org.jspecify.annotations.Nullable;

/** Refuses missing arguments. */
public final class Required {

    private Required() {}

    /**
     * {@return an argument that is not null}
     *
     * @throws NullPointerException if the argument is null; the message names the call and the argument
     */
    public static <T> T argument(String call, String name, @Nullable T value) {
        if (value == null) {
            throw UserTrace.from(new NullPointerException(call + ": the " + name + " is null"));
        }
        return value;
    }
}
