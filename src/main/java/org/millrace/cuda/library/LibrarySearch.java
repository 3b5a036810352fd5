package org.millrace.cuda.library;

import java.nio.file.Path;
import java.util.List;

/**
 * How a native library is found.
 *
 * @param title       what people call it: {@code "NCCL"}
 * @param setting     the environment variable that names the file, or a folder that holds it
 * @param property    the system property of the same meaning; it wins over the variable
 * @param directories where to look for them after the dynamic loader has
 * @param functions   what the binding calls
 * @param remedy      how to get the library: a sentence
 */
public record LibrarySearch(String title, String setting, String property, List<String> names, List<Path> directories,
        List<? extends NativeFunction> functions, String remedy) {

    /** Checks that the functions can be told apart by one bit each. */
    public LibrarySearch {
        names = List.copyOf(names);
        directories = List.copyOf(directories);
        functions = List.copyOf(functions);
        if (functions.size() > Long.SIZE) {
            throw new IllegalArgumentException(
                    title + " binds " + functions.size() + " functions; at most " + Long.SIZE + " fit");
        }
    }

    /** How to point at the library. */
    String pointer() {
        return "set " + setting + "=/path/to/" + names.getFirst() + " (or -D" + property + "=...)";
    }
}
