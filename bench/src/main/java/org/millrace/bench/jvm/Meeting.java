package org.millrace.bench.jvm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Place where the ranks find each other.
 *
 * @param directory empty directory of this run
 * @param rank      this rank, from 0
 * @param size      number of ranks
 */
public record Meeting(Path directory, int rank, int size) {

    /**
     * Tells the other ranks the port on which this rank listens.
     *
     * @param port the port
     * @throws IOException if the file cannot be written
     */
    public void tellPort(int port) throws IOException {
        Path file = Files.writeString(directory.resolve("port.new"), Integer.toString(port));
        Files.move(file, directory.resolve("port"), StandardCopyOption.ATOMIC_MOVE);
    }

    /**
     * Waits for the port of another rank.
     *
     * @return the port
     * @throws IOException if the file cannot be read
     */
    public int awaitPort() throws IOException {
        Path file = directory.resolve("port");
        while (!Files.exists(file)) {
            Thread.onSpinWait();
        }
        return Integer.parseInt(Files.readString(file));
    }
}
