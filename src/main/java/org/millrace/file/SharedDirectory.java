package org.millrace.file;

import java.nio.file.Files;
import java.nio.file.Path;

/** The directory for files that processes of one user share. */
public final class SharedDirectory {

    /** Linux's directory for shared memory. Its files are in memory. */
    public static final Path MEMORY = Path.of("/dev/shm");

    private SharedDirectory() {}

    /** Returns {@link #MEMORY} if it exists and is writable, otherwise the directory for temporary files. */
    public static Path usual() {
        return Files.isDirectory(MEMORY) && Files.isWritable(MEMORY) ? MEMORY
                : Path.of(System.getProperty("java.io.tmpdir"));
    }
}
