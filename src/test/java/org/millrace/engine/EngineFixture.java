package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/**
 * Provides the directory in which a test's ranks meet. Checks that the ranks leave no thread, and no file in this
 * directory.
 */
abstract class EngineFixture {

    static final Duration TIMEOUT = Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS);

    @TempDir
    Path directory;

    @AfterEach
    void nothingIsLeftBehind() throws Exception {
        assertEquals(List.of(), EngineGroup.threadsAlive(), "threads");
        try (Stream<Path> files = Files.walk(directory)) {
            assertEquals(List.of(), files.filter(file -> !Files.isDirectory(file)).toList(), "files");
        }
    }
}
