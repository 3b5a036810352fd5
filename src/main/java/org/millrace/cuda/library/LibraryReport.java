package org.millrace.cuda.library;

import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/**
 * What became of looking for a library, for {@code millrace doctor}.
 *
 * @param path     the file that was loaded; null if none was
 * @param version  its version as people write it; null if none was loaded, or it did not say
 * @param problem  why it cannot be used; null if it can
 * @param missing  whether the problem is that there is none
 * @param setAside candidates that came before the loaded one and were not usable: file and problem
 */
public record LibraryReport(String title, @Nullable Path path, @Nullable String version, @Nullable String problem,
        boolean missing, List<String> setAside) {

    /** Copies the list. */
    public LibraryReport {
        setAside = List.copyOf(setAside);
    }

    /** A library that could not be loaded. */
    public static LibraryReport unusable(String title, MillraceException problem) {
        return new LibraryReport(title, null, null, problem.getMessage(),
                problem instanceof NativeLibrary.NotFoundException, List.of());
    }
}
