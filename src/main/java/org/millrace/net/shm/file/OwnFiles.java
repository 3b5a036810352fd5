package org.millrace.net.shm.file;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * This process's files, deleted when it ends with them open: by Ctrl-C, which a terminal sends to all processes of a
 * run at once, by SIGTERM, or by an exit that closes nothing. What a killed process leaves behind is for
 * {@link StaleFiles}.
 */
public final class OwnFiles {

    private static final Set<Path> DIRECTORIES = ConcurrentHashMap.newKeySet();

    static {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(OwnFiles::deleteAll, "millrace-own-files"));
        } catch (IllegalStateException ending) {
            // Files that are made now are for another process to sweep.
        }
    }

    private OwnFiles() {}

    /** Notes that a file is made in a directory. */
    public static void madeIn(Path directory) {
        DIRECTORIES.add(directory);
    }

    private static void deleteAll() {
        if (ProcessIdentity.CURRENT.namespace() == 0) {
            return; // a process of another container may have the same name
        }
        for (Path directory : DIRECTORIES) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, FileName.ANY)) {
                for (Path file : files) {
                    FileName name = FileName.parse(file.getFileName().toString());
                    if (name != null && name.owner().equals(ProcessIdentity.CURRENT)) {
                        Files.deleteIfExists(file);
                    }
                }
            } catch (IOException | DirectoryIteratorException left) {
                // The process ends; whoever comes next sweeps.
            }
        }
    }
}
