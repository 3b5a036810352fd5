package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ProcessTrace.Detail;

/** When files go whose processes have ended. */
class TraceSweepTest {

    @TempDir
    private Path directory;

    @Test
    void tracesOfTheDeadStayForAnHour() throws IOException {
        ProcessIdentity here = ProcessIdentity.CURRENT;
        ProcessIdentity dead = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace());
        ProcessIdentity elsewhere = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace() + 1);
        ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), Detail.STEPS);
        long now = System.currentTimeMillis();
        Path fresh = old(dead, 1, now - 60_000);
        Path stale = old(dead, 2, now - Duration.ofHours(2).toMillis());
        Path doubtful = old(elsewhere, 3, now - Duration.ofHours(2).toMillis());
        assertEquals(2, TraceSweep.living(directory), "this process, and that of another container");
        Files.setLastModifiedTime(trace.path(), FileTime.fromMillis(now - Duration.ofHours(5).toMillis()));
        TraceSweep.sweep(directory, now);
        assertTrue(Files.exists(fresh), "an hour has not passed");
        assertFalse(Files.exists(stale));
        assertTrue(Files.exists(doubtful), "of another container");
        assertTrue(Files.exists(trace.path()), "its process lives");
    }

    private Path old(ProcessIdentity owner, long id, long millis) throws IOException {
        Path file = Files.createFile(directory.resolve(new FileName(id, owner, FileName.TRACE).toString()));
        return Files.setLastModifiedTime(file, FileTime.fromMillis(millis));
    }
}
