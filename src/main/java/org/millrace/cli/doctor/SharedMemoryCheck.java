package org.millrace.cli.doctor;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;

/** The file system through which processes of one host share memory. */
final class SharedMemoryCheck implements Check {

    /** Docker gives a container this much if nobody asks for more; a few connections fill it. */
    private static final long LITTLE = 64L << 20;
    private static final String MORE =
            "in a container: start it with --shm-size=1g or more, or with --ipc=host; else: mount -o remount,size=1g /dev/shm";

    private final Path directory;

    SharedMemoryCheck(Path directory) {
        this.directory = directory;
    }

    @Override
    public String subject() {
        return "shared memory";
    }

    @Override
    public CheckResult find() {
        if (!Files.isDirectory(directory)) {
            return CheckResult.missing(directory.toString(), "processes of one host talk over TCP instead");
        }
        if (!Files.isWritable(directory)) {
            return CheckResult.unusable(directory + " cannot be written by this user", "chmod 1777 " + directory);
        }
        try {
            FileStore store = Files.getFileStore(directory);
            String summary = directory + ": " + Bytes.text(store.getUsableSpace()) + " free of "
                    + Bytes.text(store.getTotalSpace());
            return store.getUsableSpace() <= LITTLE ? CheckResult.unusable(summary + ", which is too little", MORE)
                    : CheckResult.works(summary);
        } catch (IOException failure) {
            return CheckResult.unusable(directory + ": " + failure, MORE);
        }
    }
}
