package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A killed run leaves its files behind. The next run deletes the files. */
class RunScopeTest {

    private final List<Path> made = new ArrayList<>();

    private Path directory(String... files) throws IOException {
        Path directory = Files.createTempDirectory("millrace-perf-1-");
        made.add(directory);
        for (String file : files) {
            Files.createFile(directory.resolve(file));
        }
        return directory;
    }

    @AfterEach
    void delete() throws IOException {
        for (Path directory : made) {
            for (String file : List.of("owner", "rendezvous")) {
                Files.deleteIfExists(directory.resolve(file));
            }
            Files.deleteIfExists(directory);
        }
    }

    @Test
    void whatAKilledRunLeftIsDeleted() throws IOException {
        Path killed = directory("owner", "rendezvous");
        Path justMade = directory();
        Path living = directory("owner");
        try (FileChannel owner = FileChannel.open(living.resolve("owner"), StandardOpenOption.WRITE)) {
            assertTrue(owner.tryLock().isValid());
            try (RunScope first = new RunScope(); RunScope second = new RunScope()) {
                assertFalse(Files.exists(killed), "left by a process that is gone");
                assertTrue(Files.exists(justMade) && Files.exists(living), "of processes that live");
                for (RunScope scope : List.of(first, second)) {
                    assertTrue(Files.exists(Path.of(scope.rendezvous().substring("file:".length())).getParent()));
                }
            }
        }
    }
}
