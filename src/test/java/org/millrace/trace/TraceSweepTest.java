package org.millrace.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SystemCall;
import org.millrace.file.User;
import org.millrace.trace.TracedRank.ProcessState;

/** The deletion of files of processes that have ended. */
class TraceSweepTest {

    private static final long EXCLUSIVE = 2;

    @TempDir
    private Path directory;

    @Test
    void tracesOfDeadProcessesStayForAnHour() throws IOException {
        ProcessIdentity here = ProcessIdentity.CURRENT;
        ProcessIdentity dead = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace());
        ProcessIdentity elsewhere = new ProcessIdentity(here.pid(), here.startTicks() + 1, here.namespace() + 1);
        ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), true);
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

    /**
     * A process number of another container is meaningless in this container, so the lock of the trace file decides.
     */
    @Test
    void aTraceOfAnotherContainerIsDeletedOnceItsLockIsFree() throws IOException {
        Path shared = Path.of("/dev/shm");
        assumeTrue(Files.isDirectory(shared) && Files.getFileStore(shared).type().equals("tmpfs"), "no shared memory");
        Path memory = Files.createTempDirectory(shared, "trace-sweep-test");
        try {
            ProcessTrace trace = new ProcessTrace(TraceFile.create(memory), true);
            ProcessIdentity here = ProcessIdentity.CURRENT;
            ProcessIdentity elsewhere = new ProcessIdentity(here.pid(), here.startTicks(), here.namespace() + 1);
            Path theirs = memory.resolve(new FileName(1, elsewhere, FileName.TRACE).toString());
            Files.move(trace.path(), theirs);
            Path listener = Files.createFile(memory.resolve(new FileName(2, elsewhere, FileName.SOCKET).toString()));
            long later = System.currentTimeMillis() + Duration.ofHours(2).toMillis();
            TraceSweep.sweep(memory, later);
            assertTrue(Files.exists(theirs), "it may not have come to its lock yet");
            TraceMemory.set(trace.header() + TraceLayout.LOCKED_OFFSET, 1);
            int descriptor = SystemCall.open(theirs);
            assertEquals(0, SystemCall.of(SystemCall.FLOCK, descriptor, EXCLUSIVE, 0));
            try {
                TraceSweep.sweep(memory, later);
                assertTrue(Files.exists(theirs), "its process lives");
                assertTrue(Files.exists(listener));
                assertEquals(1, TraceSweep.living(memory));
                assertEquals(ProcessState.PAUSED, ProcessState.of(HangTest.withoutHeartbeat(theirs, elsewhere)));
            } finally {
                SystemCall.of(SystemCall.CLOSE, descriptor, 0, 0);
            }
            assertEquals(0, TraceSweep.living(memory));
            assertEquals(ProcessState.UNKNOWN, ProcessState.of(HangTest.withoutHeartbeat(theirs, elsewhere)));
            TraceSweep.sweep(memory);
            assertTrue(Files.exists(theirs), "an hour has not passed");
            assertFalse(Files.exists(listener), "of no use to anybody");
            TraceSweep.sweep(memory, later);
            assertFalse(Files.exists(theirs), "its process is gone");
        } finally {
            try (Stream<Path> left = Files.list(memory)) {
                left.forEach(PrivateFile::delete);
            }
            Files.delete(memory);
        }
    }

    /**
     * Any user with write access can create files with names of traces. Such files are not opened, and do not count as
     * traces of processes.
     */
    @Tag("root")
    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void filesThatAreNotThisUsersTracesAreIgnored() throws Exception {
        assumeTrue(User.ID == 0, "only root can make files for others");
        ProcessIdentity here = ProcessIdentity.CURRENT;
        ProcessIdentity elsewhere = new ProcessIdentity(here.pid(), here.startTicks(), here.namespace() + 1);
        Path pipe = directory.resolve(new FileName(1, elsewhere, FileName.TRACE).toString());
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        Path empty = Files.createFile(directory.resolve(new FileName(2, here, FileName.TRACE).toString()));
        Files.setAttribute(empty, "unix:uid", 4711);
        assertEquals(0, TraceSweep.living(directory));
        TraceSweep.sweep(directory, System.currentTimeMillis() + Duration.ofHours(2).toMillis());
        assertTrue(Files.exists(empty) && Files.exists(pipe));
        ProcessTrace trace = new ProcessTrace(TraceFile.create(directory), true);
        assertEquals(1, TraceSweep.living(directory));
        PrivateFile.delete(trace.path());
    }

    private Path old(ProcessIdentity owner, long id, long millis) throws IOException {
        Path file = Files.createFile(directory.resolve(new FileName(id, owner, FileName.TRACE).toString()));
        return Files.setLastModifiedTime(file, FileTime.fromMillis(millis));
    }
}
