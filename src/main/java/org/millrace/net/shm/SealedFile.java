package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.SystemCall;
import org.millrace.file.User;
import org.millrace.foreign.CFunction;

/**
 * Memory in a file without a path (a Linux memfd) that is sealed against truncation. A process that maps it never
 * receives a SIGBUS, whatever other processes do with the file. Another process of the same user opens it through the
 * creator's file descriptor, {@code /proc/PID/fd/N}, while this descriptor is open. The opening process checks the
 * file's label and seals. This check does not rely on the process ID, which may have been reused.
 */
final class SealedFile implements AutoCloseable {

    /**
     * Seals of {@code <linux/fcntl.h>}: no seal can be added, the file cannot shrink, and the file cannot grow.
     */
    static final int SEAL_SEALS = 1;
    static final int SEAL_SHRINK = 2;
    static final int SEAL_GROW = 4;
    static final int ALL = SEAL_SEALS | SEAL_SHRINK | SEAL_GROW;

    private static final Logger LOG = LogManager.getLogger(SealedFile.class);
    private static final long CLOSE_ON_EXEC = 1;
    private static final long ALLOW_SEALING = 2;
    private static final long NOT_EXECUTABLE = 8;
    private static final long ADD_SEALS = 1033;
    private static final long GET_SEALS = 1034;
    private static final long PUNCH_HOLE_KEEP_SIZE = 3;
    private static final int EINVAL = 22;

    private final int descriptor;
    private final FileName name;
    private boolean closed;

    private SealedFile(int descriptor, FileName name) {
        this.descriptor = descriptor;
        this.name = name;
    }

    /**
     * Returns the same number in all processes that can open each other's sealed files. Returns 0 if this process
     * cannot have sealed files. Callers then use a file in a directory instead.
     */
    static long domain() {
        return Domain.NUMBER;
    }

    /**
     * Creates a file of zeros. Memory for the rest of the file is allocated later, by {@link #take} or by the first
     * access to a page.
     *
     * @param allocated number of bytes at the beginning of the file that are allocated immediately
     * @param length    length of the file
     */
    static SealedFile create(long allocated, long length, int seals) throws IOException {
        long id = new SecureRandom().nextLong();
        int descriptor = memory(id);
        SealedFile file = new SealedFile(descriptor, FileName.sealed(id, descriptor));
        try (FileChannel channel = file.channel()) {
            PrivateFile.fill(channel, allocated);
            PrivateFile.extend(channel, length);
            SystemCall.check("fcntl(F_ADD_SEALS)", SystemCall.of(SystemCall.FCNTL, descriptor, ADD_SEALS, seals));
            return file;
        } catch (IOException e) {
            file.close();
            throw e;
        }
    }

    /**
     * Allocates memory for a part of a sparse file. Without this call, an access could kill the process when memory is
     * exhausted.
     *
     * @throws IOException if not enough memory is available
     */
    void take(long offset, long bytes) throws IOException {
        SystemCall.check("fallocate", SystemCall.of(SystemCall.FALLOCATE, descriptor, 0, offset, bytes));
    }

    /** Frees the memory of a part of the file. The part then contains zeros again. */
    void giveBack(long offset, long bytes) throws IOException {
        SystemCall.check("fallocate",
                SystemCall.of(SystemCall.FALLOCATE, descriptor, PUNCH_HOLE_KEEP_SIZE, offset, bytes));
    }

    /** @throws IOException if the file does not exist, lacks a seal, or has another label than {@code name} */
    static FileChannel open(FileName name) throws IOException {
        if (!name.owner().isOfThisNamespace() || domain() == 0) {
            throw new IOException("its process is of another PID namespace");
        }
        Path there = Path.of("/proc/" + name.owner().pid() + "/fd/" + name.descriptor());
        int descriptor = SystemCall.open(there);
        try (SealedFile file = new SealedFile(descriptor, name)) {
            String linked = Files.readSymbolicLink(file.path()).toString();
            if (!linked.equals("/memfd:" + label(name.id()) + " (deleted)")) {
                throw new IOException(there + " is " + linked + ", and not " + label(name.id())
                        + ": the process that made it has ended");
            }
            long seals = SystemCall.of(SystemCall.FCNTL, descriptor, GET_SEALS, 0);
            if (seals < 0 || (seals & ALL) != ALL) {
                throw new IOException(there + " is not sealed: its creator could truncate it");
            }
            return file.channel();
        }
    }

    /**
     * Creates a memfd. Linux before 6.3 does not support the flag for a non-executable file, and later releases may
     * require the flag.
     */
    private static int memory(long id) throws IOException {
        if (!SystemCall.isKnown()) {
            throw new IOException("memfd_create is not known here");
        }
        try (Arena arena = Arena.ofConfined()) {
            long name = arena.allocateFrom(label(id)).address();
            long flags = CLOSE_ON_EXEC | ALLOW_SEALING;
            long made = SystemCall.of(SystemCall.MEMFD_CREATE, name, flags | NOT_EXECUTABLE, 0);
            return (int) SystemCall.check("memfd_create",
                    made == -EINVAL ? SystemCall.of(SystemCall.MEMFD_CREATE, name, flags, 0) : made);
        }
    }

    private static String label(long id) {
        return "millrace-" + Long.toHexString(id);
    }

    FileName name() {
        return name;
    }

    private Path path() {
        return Path.of("/proc/self/fd/" + descriptor);
    }

    /** Opens another descriptor of this file. */
    FileChannel channel() throws IOException {
        return FileChannel.open(path(), StandardOpenOption.READ, StandardOpenOption.WRITE);
    }

    /** Closes the descriptor that other processes use to open the file. Existing mappings stay. May be called twice. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            SystemCall.of(SystemCall.CLOSE, descriptor, 0, 0);
        }
    }

    /**
     * The number that {@link #domain} returns. The number is determined once, at its first use. The linking of the
     * system calls would otherwise delay the start of the process.
     */
    private static final class Domain {

        /**
         * Factor that combines several numbers into one. The factor spreads a difference between two inputs over the
         * bits of the result.
         */
        private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;
        static final long NUMBER = tried();

        private static long tried() {
            long processes = ProcessIdentity.CURRENT.namespace();
            if (processes == 0 || !SystemCall.isKnown()) {
                return 0;
            }
            try (SealedFile file = create(1, 1, ALL)) {
                String users = Files.readSymbolicLink(Path.of("/proc/self/ns/user")).toString().replaceAll("\\D", "");
                Path there = Path.of("/proc/" + ProcessIdentity.CURRENT.pid() + "/fd/" + file.descriptor);
                FileChannel.open(there, StandardOpenOption.READ, StandardOpenOption.WRITE).close();
                // The operating system lets a process open another process's files only if both have the same user and
                // group.
                long group = CFunction.named("getegid").call();
                long user = (processes * SPREAD + Long.parseLong(users)) * SPREAD + User.ID;
                // The result is never 0, because 0 means that sealed files are not possible.
                return user * SPREAD + (int) group | 1;
            } catch (IOException | RuntimeException e) {
                LOG.debug("no sealed memory here: files serve instead", e);
                return 0;
            }
        }
    }
}
