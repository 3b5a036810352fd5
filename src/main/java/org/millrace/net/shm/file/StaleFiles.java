package org.millrace.net.shm.file;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/** Files that killed processes left behind. */
public final class StaleFiles {

    private static final Logger LOG = LogManager.getLogger(StaleFiles.class);

    private StaleFiles() {}

    /**
     * Deletes those of our files whose process is provably dead.
     *
     * @param directory where they lie
     */
    public static void sweep(Path directory) {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, FileName.ANY)) {
            for (Path file : files) {
                sweepOne(file);
            }
        } catch (IOException e) {
            LOG.warn("cannot look for stale files in {}: {}", directory, e.toString());
        }
    }

    private static void sweepOne(Path file) {
        FileName name = FileName.parse(file.getFileName().toString());
        if (name == null || !name.owner().isProvablyDead()) {
            return;
        }
        try {
            if (CurrentUser.owns(file) && Files.deleteIfExists(file)) {
                LOG.info("deleted {}, which {} left behind when it was killed", file, name.owner());
            }
        } catch (IOException e) {
            LOG.debug("{} is stale, and cannot be deleted", file, e);
        }
    }
}
