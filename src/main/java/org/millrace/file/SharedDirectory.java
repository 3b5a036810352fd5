package org.millrace.file;

import java.nio.file.Files;
import java.nio.file.Path;

/** Where processes of one user share files. */
public final class SharedDirectory {

    /** Memory, on Linux. */
    public static final Path MEMORY = Path.of("/dev/shm");

    private SharedDirectory() {}

    /** {@link #MEMORY}, or the directory for temporary files where there is none. */
    public static Path usual() {
        return Files.isDirectory(MEMORY) && Files.isWritable(MEMORY) ? MEMORY
                : Path.of(System.getProperty("java.io.tmpdir"));
    }
}
