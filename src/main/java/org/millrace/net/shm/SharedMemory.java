package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel.MapMode;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.User;

/**
 * Memory that processes of one user share. It is a {@link SealedFile} if the kernel has it and all processes can open
 * it. Otherwise it is a file that only these processes open, with a random name and mode 0600. It is deleted as soon as
 * the second of two processes, or the last of several, has mapped it. If its creator was killed before, the next
 * listener in the directory deletes it.
 */
public final class SharedMemory implements AutoCloseable {

    /** Length of a {@link #key} in words. */
    public static final int KEY_WORDS = 4;
    private static final Path NOWHERE = Path.of("");

    private final Path directory;
    private final FileName name;
    /** The file that others open; null if another process created it. */
    private final @Nullable SharedFile made;
    private final Mapping mapping;

    private SharedMemory(Path directory, FileName name, @Nullable SharedFile made, FileChannel channel, long bytes)
            throws IOException {
        this.directory = directory;
        this.name = name;
        this.made = made;
        mapping = new Mapping(channel, MapMode.READ_WRITE, bytes);
    }

    /**
     * Creates memory of zeros. This process touches all its pages first, so that they lie on its NUMA node. The file
     * exists until {@link #close}, or until the other process has opened it.
     *
     * @throws ShmUnavailableException if not enough memory is left
     */
    public static SharedMemory create(Path directory, long bytes) {
        try {
            return map(directory, SharedFile.create(directory, FileName.MEMORY, bytes), bytes);
        } catch (IOException e) {
            throw ShmUnavailableException.noRoom("shared memory", bytes, directory,
                    "set NCCL_SHM_DISABLE=1, or a smaller NCCL_BUFFSIZE", e);
        }
    }

    private static SharedMemory map(Path directory, SharedFile made, long bytes) throws IOException {
        try (FileChannel channel = made.channel()) {
            return new SharedMemory(directory, made.name(), made, channel, bytes);
        } catch (IOException e) {
            made.withdraw();
            throw e;
        }
    }

    /** Returns a number that is equal for processes that can share sealed memory; 0 without such memory. */
    public static long sealedDomain() {
        return SealedFile.domain();
    }

    /** Creates sealed memory of zeros, for processes of the same {@link #sealedDomain}. */
    public static SharedMemory createSealed(long bytes) {
        try {
            return map(NOWHERE, SharedFile.createSealed(bytes, false), bytes);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot make shared memory of " + bytes + " bytes: " + e.getMessage()
                    + "; set NCCL_SHM_DISABLE=1, or a smaller NCCL_BUFFSIZE", e);
        }
    }

    /** Maps memory that another process created, and deletes its file. */
    public static SharedMemory open(Path directory, String name, long bytes) {
        FileName parsed = FileName.parse(name); // ensures that it contains no slash
        if (parsed == null || !(parsed.isSealed() || parsed.kind().equals(FileName.MEMORY))) {
            throw new ShmUnavailableException("\"" + name + "\" is no name of shared memory of ours");
        }
        SharedMemory memory = map(directory, parsed, bytes);
        memory.deleteFile();
        return memory;
    }

    private static SharedMemory map(Path directory, FileName name, long bytes) {
        try (FileChannel channel = SharedFile.open(directory, name)) {
            if (channel.size() != bytes) {
                throw new IOException("it has " + channel.size() + " bytes instead of " + bytes);
            }
            return new SharedMemory(directory, name, null, channel, bytes);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot open the memory " + name + " that " + name.owner() + " shares: "
                    + e.getMessage() + (name.isSealed() ? "; NCCL_SHM_DISABLE=1 does without"
                            : "; do both processes see the directory " + directory + "?"),
                    e);
        }
    }

    /** Maps memory like the other method, by the {@link #key} of its creator. */
    public static SharedMemory open(Path directory, long[] key, long bytes) {
        return open(directory, nameOf(key).toString(), bytes);
    }

    /** Maps memory that several processes share. Its file stays until its creator calls {@link #deleteFile}. */
    public static SharedMemory join(Path directory, long[] key, long bytes) {
        return map(directory, nameOf(key), bytes);
    }

    /** The upper half of the process's word holds the descriptor's number plus one; 0 for a file in a directory. */
    private static FileName nameOf(long[] key) {
        int descriptor = (int) (key[1] >> Integer.SIZE) - 1;
        ProcessIdentity owner = new ProcessIdentity(key[1] & 0xFFFF_FFFFL, key[2], key[3]);
        return descriptor < 0 ? new FileName(key[0], owner, FileName.MEMORY)
                : FileName.sealed(key[0], owner, descriptor);
    }

    /** Called when all processes that need the memory have mapped it. May be called twice. */
    public void deleteFile() {
        if (made != null) {
            made.withdraw();
        } else {
            SharedFile.withdraw(directory, name);
        }
    }

    /** Returns the user and the directory of these files: two processes with the same result can share memory. */
    public static String place(Path directory) {
        try {
            if (!Files.isWritable(directory)) {
                throw new ShmUnavailableException(directory + " is no directory that this user can write to");
            }
            return "host " + Long.toHexString(thisHost()) + ", device " + Files.getAttribute(directory, "unix:dev")
                    + ", user " + User.text(User.ID);
        } catch (IOException | UnsupportedOperationException e) {
            throw new ShmUnavailableException("cannot tell which directory " + directory + " is: " + e, e);
        }
    }

    /**
     * Returns a number that differs for every host, and for every boot of a host. Two processes with different numbers
     * share no memory. Two with the same number may or may not, because containers can have their own directories.
     */
    public static long thisHost() {
        return ThisHost.NUMBER;
    }

    /** Derives the number from the kernel's random boot ID, or from the host name if the kernel has no boot ID. */
    private static final class ThisHost {

        static final long NUMBER = hash(bootId());

        private static String bootId() {
            try {
                return Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).strip();
            } catch (IOException notLinux) {
                try {
                    return InetAddress.getLocalHost().getHostName();
                } catch (IOException unnamed) {
                    // All hosts without a name have the same number. The search for the listener's socket distinguishes
                    // them.
                    return "";
                }
            }
        }

        private static long hash(String text) {
            try {
                return ByteBuffer
                        .wrap(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)))
                        .getLong();
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every JDK has SHA-256", e);
            }
        }
    }

    /** Returns the data that another process needs to open it: the name of its file in the directory. */
    public String name() {
        return name.toString();
    }

    /** Returns the {@link #name} as {@value #KEY_WORDS} numbers, for a caller that cannot send a text. */
    public long[] key() {
        long descriptor = name.isSealed() ? name.descriptor() + 1L : 0;
        return new long[] {name.id(), name.owner().pid() | descriptor << Integer.SIZE, name.owner().startTicks(),
                name.owner().namespace()};
    }

    /** Returns a segment of the global scope, which must not be accessed after {@link #close}. */
    public MemorySegment segment() {
        return mapping.segment();
    }

    /** Unmaps the memory, and deletes its file if that still exists. May be called twice. */
    @Override
    public synchronized void close() {
        if (mapping.isOpen()) {
            mapping.close();
            deleteFile();
        }
    }

    /**
     * A file's bytes as memory of the global scope, which must not be accessed after {@link #close}. The memory is
     * polled, so no access checks an arena, and no close can interrupt an access.
     */
    public static final class Mapping implements AutoCloseable {

        private final Arena arena = Arena.ofShared();
        private final MemorySegment segment;

        @SuppressWarnings("restricted") // reinterprets the mapping, within its bounds
        Mapping(FileChannel channel, MapMode mode, long bytes) throws IOException {
            try {
                MemorySegment all =
                        MemorySegment.ofAddress(channel.map(mode, 0, bytes, arena).address()).reinterpret(bytes);
                segment = mode == MapMode.READ_ONLY ? all.asReadOnly() : all;
            } catch (IOException | RuntimeException e) {
                arena.close();
                throw e;
            }
        }

        public MemorySegment segment() {
            return segment;
        }

        boolean isOpen() {
            return arena.scope().isAlive();
        }

        /** May be called twice. */
        @Override
        public synchronized void close() {
            if (isOpen()) {
                arena.close();
            }
        }
    }
}
