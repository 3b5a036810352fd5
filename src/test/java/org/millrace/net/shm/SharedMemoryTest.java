package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;

class SharedMemoryTest {

    @TempDir
    Path directory;

    @AfterEach
    void nothingIsLeft() throws IOException {
        try (var files = Files.list(directory)) {
            assertEquals(List.of(), files.filter(file -> file.toString().endsWith(".mem")).toList());
        }
    }

    @Test
    void bothSidesSeeTheSameMemoryAndNobodyElseDoes() throws IOException {
        SharedMemory mine = SharedMemory.create(directory, 10_000);
        assertEquals("rw-------",
                PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.resolve(mine.name()))));
        try (SharedMemory theirs = SharedMemory.open(directory, mine.name(), 10_000)) {
            assertFalse(Files.exists(directory.resolve(mine.name())), "the name is gone once both have the memory");
            mine.segment().set(ValueLayout.JAVA_LONG, 9992, 42);
            assertEquals(42, theirs.segment().get(ValueLayout.JAVA_LONG, 9992));
            mine.close();
            mine.close();
            assertEquals(42, theirs.segment().get(ValueLayout.JAVA_LONG, 9992), "each side lets go by itself");
            assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, mine.name(), 10_000));
        }
    }

    @Test
    void namesAndSizesOfAPeerAreNotBelieved() throws IOException {
        Path other = Files.writeString(directory.resolve("other"), "not ours");
        assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, "other", 8));
        assertThrows(ShmUnavailableException.class,
                () -> SharedMemory.open(directory, "../" + directory.getFileName() + "/other", 8));
        assertTrue(Files.exists(other));
        try (SharedMemory mine = SharedMemory.create(directory, 4096)) {
            String message =
                    assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, mine.name(), 8192))
                            .getMessage();
            assertTrue(message.contains("4096 bytes instead of 8192"), message);
            Path link = directory.resolve(FileName.ours(7, FileName.MEMORY).toString());
            Files.createSymbolicLink(link, directory.resolve(mine.name()));
            assertThrows(ShmUnavailableException.class,
                    () -> SharedMemory.open(directory, link.getFileName().toString(), 4096));
            Files.delete(link);
        }
    }

    /** If a file becomes shorter, a process that maps the file receives SIGBUS when it accesses the lost pages. */
    @Test
    void sealedMemoryCannotBeMadeShorter() throws IOException {
        assumeTrue(SharedMemory.sealedDomain() != 0, "this machine has no sealed memory");
        SharedMemory mine = SharedMemory.createSealed(10_000);
        FileName name = FileName.parse(mine.name());
        Path descriptor = Path.of("/proc/self/fd/" + name.descriptor());
        try (SharedMemory theirs = SharedMemory.open(directory, mine.name(), 10_000);
                SharedMemory joined = SharedMemory.join(directory, mine.key(), 10_000);
                FileChannel attacker =
                        FileChannel.open(descriptor, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            assertThrows(IOException.class, () -> attacker.truncate(0));
            mine.segment().set(ValueLayout.JAVA_LONG, 9992, 42);
            assertEquals(42, theirs.segment().get(ValueLayout.JAVA_LONG, 9992));
            assertEquals(42, joined.segment().get(ValueLayout.JAVA_LONG, 9992));
            assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, mine.name(), 8));
            mine.close();
            mine.close();
            assertFalse(Files.exists(descriptor) && Files.readSymbolicLink(descriptor).toString().contains("millrace-"),
                    "its descriptor stays open");
            assertEquals(42, theirs.segment().get(ValueLayout.JAVA_LONG, 9992), "each side lets go by itself");
            assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, mine.name(), 10_000));
        }
    }

    /**
     * A process that opens a file must refuse a file without seals, because the creator could still make it shorter. A
     * file's name contains a descriptor number, which may now belong to another file.
     */
    @Test
    void memoryThatIsNotSealedIsRefused() throws IOException {
        assumeTrue(SharedMemory.sealedDomain() != 0, "this machine has no sealed memory");
        try (SealedFile open = SealedFile.create(4096, 4096, SealedFile.SEAL_GROW)) {
            String said = assertThrows(ShmUnavailableException.class,
                    () -> SharedMemory.open(directory, open.name().toString(), 4096)).getMessage();
            assertTrue(said.contains("not sealed"), said);
            FileName other = FileName.sealed(open.name().id() + 1, open.name().descriptor());
            said = assertThrows(ShmUnavailableException.class,
                    () -> SharedMemory.open(directory, other.toString(), 4096)).getMessage();
            assertTrue(said.contains("has ended"), said);
        }
        FileName file = FileName.sealed(1, 0);
        assertThrows(ShmUnavailableException.class, () -> SharedMemory.open(directory, file.toString(), 4096));
    }

    @Test
    void aDirectoryThatIsNotThereIsSaid() {
        Path missing = directory.resolve("missing");
        assertTrue(assertThrows(ShmUnavailableException.class, () -> SharedMemory.place(missing)).getMessage()
                .contains("missing"));
        String message =
                assertThrows(ShmUnavailableException.class, () -> SharedMemory.create(missing, 4096)).getMessage();
        assertTrue(message.contains("NCCL_SHM_DISABLE=1"), message);
        assertEquals(SharedMemory.place(directory), SharedMemory.place(directory));
    }
}
